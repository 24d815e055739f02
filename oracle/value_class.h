// Classes of weighted sums by IEEE rules, before any arithmetic: what must be NaN or infinite, whatever the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "oracle/softmax_tier.h"

namespace attest {

// x - x is 0 for a finite x and NaN for every other. Independent lanes, so that it vectorises: the scan has to cost
// little beside a dot product.
inline bool all_finite(const double* x, std::int64_t n) {
  double s[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int t = 0; t < 8; ++t) s[t] += x[i + t] - x[i + t];
  for (; i < n; ++i) s[0] += x[i] - x[i];
  return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])) == 0;
}

// Sets the kind of each column first ... of sum w_j v_j: `v` has weights > 0, `blocked` weights that are exactly 0.
// NaN in either, an infinity in `blocked` (0 * inf), or both infinities in `v`: nan. One infinity: that one.
void classify(std::span<const double* const> v, std::span<const double* const> blocked, std::int64_t first,
              std::span<TruthElement> out);

// Calls f(begin, elements) for each longest run of columns that are finite.
template <class F>
void for_finite_runs(std::span<TruthElement> columns, F&& f) {
  for (std::size_t begin = 0; begin < columns.size(); ++begin) {
    std::size_t end = begin;
    while (end < columns.size() && columns[end].kind == TruthKind::finite) ++end;
    if (end > begin) f(static_cast<std::int64_t>(begin), columns.subspan(begin, end - begin));
    begin = end;
  }
}

// The tier's own maker.
std::unique_ptr<SoftmaxTier> make_tier(const Row& row, Tier tier);
std::unique_ptr<SoftmaxTier> make_tier(std::span<const double> scores, Tier tier);

}  // namespace attest
