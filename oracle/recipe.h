// Value recipes: reproducible everywhere. A counter-based generator (Philox4x32-10) and IEEE operations only; no
// <random> distribution, no libm. Golden hashes are tested under every compiler in use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/case.h"

namespace attest {

// A value family: name, what it is for, and its parameters with defaults.
struct Family {
  std::string_view name;
  std::string_view purpose;
  bool random;  // plain random values at a generated seed: what the statistical laws may judge
  std::vector<std::pair<std::string_view, double>> parameters;
};
const std::vector<Family>& families();
const Family* find_family(std::string_view name);

// Raises CaseError unless the case's family exists, has the parameters given, and these lie in their ranges.
void check_family(const Case& c, const std::string& origin);

// Exact doubles of every input tensor before rounding to storage, logical row-major order; literals laid over.
// forward: q, k, v. step: m, l, acc, scores, v. merge: m, l, acc (leading axis parts).
// Block-wise families (swings, staircase, needles at tile edges) use tiling.block_k, or 16 where it is 0.
Named<std::vector<double>> make_values(const Case& c);

// 1 = visible; logical [batch, q_heads, tq, tk] of the mask's own shape (axes of extent 1 broadcast).
struct MaskValues {
  std::int64_t shape[4];
  std::vector<std::uint8_t> visible;
};
MaskValues make_mask(const MaskTensor& m, const Shape& shape, std::int64_t block_k);
const std::vector<std::string_view>& mask_patterns();

}  // namespace attest
