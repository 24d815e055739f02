// A trivial readable attention (fp32 in and out, computed in double) and what becomes of it with one mistake each.
// They show that every law can fail. The mutants of properties/mutants measure how well the laws see; these only
// show that they do.
#pragma once

#include <string>
#include <vector>

#include "properties/law.h"

namespace attest::broken {

enum class Mistake {
  none,
  off_by_a_thousandth,
  empty_row_is_nan,
  merge_without_guard,
  merge_is_lopsided,
  merge_forgets_rescale,
  drops_single_last_key,
  step_forgets_rescale,
  no_maximum,
  reads_masked_values,
  maximum_over_masked_keys,
  leaves_last_row,
  normalises_in_lse,
  writes_to_inputs,
  counts_its_calls,
  later_batches_differ,
  odd_blocks_differ,
  ignores_value_stride,
  heads_interleaved,
  last_key_counts_double,
  weights_do_not_add_up,
  adds_a_millionth,
  lse_without_maximum,
  decode_drops_last_key,
  kv_len_ignored,
  nan_becomes_zero,
  scale_slightly_off,
  unusual,  // no mistake: see unusual_kernel()
};

struct Broken {
  std::string law;  // the law that must fail
  Mistake mistake;
  std::int32_t op;  // ATTN_OP_*
};
const std::vector<Broken>& table();

Kernel kernel(std::int32_t op, Mistake mistake);

// The right forward kernel with another Contract: no promises, a NaN anywhere in a head reaches all of its rows, LSE in
// base 2 and +inf for a row without keys.
Kernel unusual_kernel();

}  // namespace attest::broken
