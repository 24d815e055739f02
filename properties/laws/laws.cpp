#include <array>

#include "properties/laws/table.h"

namespace attest {

// One line a law. Drivers run them in this order: what fails first should say most.
std::span<const Law> laws() {
  static const std::array table{
      encloses_law(),
      fully_masked_row_law(),
      merge_identity_law(),
      merge_commutes_law(),
      merge_associates_law(),
      chunking_law(),
      step_folds_law(),
      swings_law(),
      poison_law(),
      causal_prefix_law(),
      unwritten_law(),
      untouched_law(),
      deterministic_law(),
      batch_invariant_law(),
      tiling_invariant_law(),
      strides_law(),
      gqa_expands_law(),
      permutes_law(),
      hull_law(),
      scales_law(),
      shifts_law(),
      decode_is_prefill_law(),
      option_matters_law(),
      nan_reaches_law(),
      expected_law(),
      unbiased_law(),
  };
  return table;
}

const Law* find_law(std::string_view name) {
  for (const Law& law : laws())
    if (law.name == name) return &law;
  return nullptr;
}

}  // namespace attest
