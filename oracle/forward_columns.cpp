// The linear bound: sums over keys for every column at once, keys outside, columns inside, so that they vectorise.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {

ColumnSums sum_columns(const Row& row, const RowStats& stats, const ForwardTerms& t) {
  const std::int64_t n = row.size(), d = row.d_v;
  ColumnSums s;
  s.weight.assign(d, 0.0);
  s.numerator.assign(d, 0.0);
  s.value_sum.assign(d, 0.0);
  s.low.assign(row.v[0], row.v[0] + d);
  s.high = s.low;
  const double* o = stats.o.data();
  double *weight = s.weight.data(), *numerator = s.numerator.data(), *value_sum = s.value_sum.data();
  double *low = s.low.data(), *high = s.high.data();
  for (std::int64_t j = 0; j < n; ++j) {
    const double common = t.excess[j] / stats.W;
    const double own = (t.rho[j] + (stats.w[j] + t.excess[j] + t.rho[j]) * t.alpha[j]) / stats.W;
    const double* v = row.v[j];
    for (std::int64_t e = 0; e < d; ++e) {
      const double magnitude = std::fabs(v[e]);
      weight[e] += common * std::fabs(v[e] - o[e]);
      numerator[e] += own * magnitude;
      value_sum[e] += magnitude;
      low[e] = v[e] < low[e] ? v[e] : low[e];
      high[e] = v[e] > high[e] ? v[e] : high[e];
    }
  }
  return s;
}

// |o^ - o| <= sum pi [theta |v - o| + (1 + theta)(nu |v| + mu |o|)] / sum pi (1 + theta)(1 + mu), every error at its
// worst; the result before the last division. Infinite where the denominator may vanish.
double linear_bound(const ForwardTerms& t, const ColumnSums& sums, std::int64_t e, double o) {
  const double denominator = (1 - t.T) * (1 - t.sigma);
  if (!(denominator > 0)) return HUGE_VAL;
  // stats.o is itself a double: its error enters through |v - o| only.
  const double largest = std::max(std::fabs(sums.low[e]), std::fabs(sums.high[e]));
  const double own = t.T * static_cast<double>(t.tau.size() + 16) * 0x1p-53 * largest;
  const double numerator = sums.weight[e] + own + sums.numerator[e] + t.sigma * (1 + t.T) * std::fabs(o);
  return numerator / denominator + t.floor_error;
}

}  // namespace attest
