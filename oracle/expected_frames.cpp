// Running maxima of a sequential kernel, and sums over groups of keys whose rounding errors are one error.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "oracle/expected_terms.h"

namespace attest {

Frames walk(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats, const ForwardTerms& t,
            bool own_maximum) {
  const std::int64_t n = row.size(), block_k = std::max<std::int64_t>(1, plan.block_k);
  const bool fa1 = a.contract.algorithm == ATTN_ALG_FA1;
  Frames f;
  f.frame.resize(n);
  f.local_gap.resize(n);
  f.starts.assign(n, false);
  f.restarts.assign(n, false);
  const bool split = a.contract.algorithm == ATTN_ALG_SPLIT && plan.splits > 1;
  for (const Segment& s : t.segments) {
    const std::int64_t first_key = split ? row.key[s.begin] / plan.keys_per_split * plan.keys_per_split : 0;
    double frame = HUGE_VAL;
    for (std::int64_t j = s.begin; j < s.end;) {
      const std::int64_t begin = j, block = (row.key[j] - first_key) / block_k;
      double own = HUGE_VAL;
      for (; j < s.end && (row.key[j] - first_key) / block_k == block; ++j) own = std::min(own, stats.gap[j]);
      // A lazily rescaled maximum stays where it is while it rises by no more than the threshold.
      if (own < frame && !(begin > s.begin && a.lazy > 0 && frame - own <= a.lazy)) frame = own;
      const double used = own_maximum ? own : frame;
      f.starts[begin] = true;
      f.restarts[begin] = begin == s.begin || fa1;
      for (std::int64_t i = begin; i < j; ++i) {
        f.frame[i] = used;
        f.local_gap[i] = stats.gap[i] - used;
      }
    }
  }
  return f;
}

void add_grouped(const std::vector<double>& weight, const std::vector<double>& position, double width, Factor factor,
                 const Row& row, const RowStats& stats, std::vector<double>& square) {
  const std::size_t n = weight.size();
  const std::int64_t d = factor == Factor::one ? 1 : row.d_v;
  std::vector<double> bucket(n), sum(d);
  for (std::size_t j = 0; j < n; ++j) bucket[j] = std::floor(position[j] / width);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return bucket[x] < bucket[y]; });
  for (std::size_t i = 0; i < n;) {
    std::fill(sum.begin(), sum.end(), 0.0);
    const double b = bucket[order[i]];
    for (; i < n && bucket[order[i]] == b; ++i) {
      const std::size_t j = order[i];
      const double* v = row.v[j];
      for (std::int64_t e = 0; e < d; ++e) {
        const double f = factor == Factor::one ? 1 : factor == Factor::value ? v[e] : v[e] - stats.o[e];
        sum[e] += weight[j] * std::fabs(f);
      }
    }
    for (std::int64_t e = 0; e < d; ++e) square[e] += sum[e] * sum[e];
  }
}

}  // namespace attest
