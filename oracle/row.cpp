#include "oracle/row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double largest_gap_error = 0x1p-40;  // beyond it scores are taken exactly

// An unevaluated sum of two doubles; enough of double-double for dot products (Ogita, Rump, Oishi 2005, Dot2).
struct Pair {
  double hi = 0, lo = 0;
};

Pair two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

Pair dot(const double* x, const double* y, std::int64_t n) {
  Pair sum;
  for (std::int64_t i = 0; i < n; ++i) {
    const double product = x[i] * y[i];
    const Pair s = two_sum(sum.hi, product);
    sum = {s.hi, sum.lo + (s.lo + std::fma(x[i], y[i], -product))};
  }
  return two_sum(sum.hi, sum.lo);
}

bool all_finite(const double* x, std::int64_t n) {
  return std::all_of(x, x + n, [](double v) { return std::isfinite(v); });
}

}  // namespace

Row make_row(const Problem& p, std::int64_t batch, std::int64_t q_head, std::int64_t i) {
  const Shape& s = p.source().shape;
  const std::int64_t kv_head = q_head / (s.q_heads / s.kv_heads);
  Row row;
  row.tk = s.tk;
  row.d_qk = s.d_qk;
  row.d_v = s.d_v;
  row.scale = p.scale();
  row.q = p.input("q").data() + ((batch * s.q_heads + q_head) * s.tq + i) * s.d_qk;
  const double* const k = p.input("k").data() + (batch * s.kv_heads + kv_head) * s.tk * s.d_qk;
  const double* const v = p.input("v").data() + (batch * s.kv_heads + kv_head) * s.tk * s.d_v;
  for (std::int64_t j = 0; j < s.tk; ++j) {
    if (!p.visible(batch, q_head, i, j)) continue;
    row.key.push_back(j);
    row.k.push_back(k + j * s.d_qk);
    row.v.push_back(v + j * s.d_v);
  }
  return row;
}

RowStats row_stats(const Row& row) {
  const auto n = static_cast<std::size_t>(row.size());
  RowStats stats;
  stats.x.assign(n, 0);
  stats.A.assign(n, 0);
  stats.gap.assign(n, 0);
  stats.w.assign(n, 0);
  stats.o.assign(static_cast<std::size_t>(row.d_v), 0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (n == 0) {  // nothing visible: no maximum, no weight
    stats.m = stats.lse = -infinity;
    return stats;
  }

  stats.finite = std::isfinite(row.scale) && all_finite(row.q, row.d_qk);
  std::vector<Pair> score(n);
  for (std::size_t j = 0; j < n && stats.finite; ++j) {
    stats.finite = all_finite(row.k[j], row.d_qk) && all_finite(row.v[j], row.d_v);
    if (!stats.finite) break;
    score[j] = dot(row.q, row.k[j], row.d_qk);
    stats.x[j] = score[j].hi;
    for (std::int64_t e = 0; e < row.d_qk; ++e) stats.A[j] += std::abs(row.q[e] * row.k[j][e]);
    // An overflow anywhere shows in A, which bounds every partial sum.
    stats.finite =
        std::isfinite(stats.A[j]) && std::isfinite(score[j].hi + score[j].lo) && std::isfinite(row.scale * stats.A[j]);
  }
  if (!stats.finite) {  // no number here means anything; keep out NaN from inf - inf
    stats.x.assign(n, 0);
    stats.A.assign(n, 0);
    return stats;
  }

  const Pair top = *std::max_element(score.begin(), score.end(), [](const Pair& a, const Pair& b) {
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
  });
  stats.m = top.hi;
  // Dot2 misses the exact product by at most (d + 3)^2 2^-106 of sum |q k|, and each gap has two of them.
  const double terms = static_cast<double>(row.d_qk + 3);
  const double largest = *std::max_element(stats.A.begin(), stats.A.end());
  stats.gap_error = row.scale * largest * (2 * terms * terms * 0x1p-106);
  const bool in_pairs = stats.gap_error <= largest_gap_error;
  if (!in_pairs) {
    stats.gap = exact_gaps(row);
    stats.gap_error = 0x1p-100 * terms;
  }
  for (std::size_t j = 0; j < n && in_pairs; ++j) {
    // The difference first, in both parts, so that a small gap between large scores keeps its digits.
    const Pair d = two_sum(top.hi, -score[j].hi);
    const double gap = row.scale * (d.hi + (d.lo + (top.lo - score[j].lo)));
    // Scores at both ends of the range may be further apart than doubles reach; the weight is 0 in any case.
    constexpr double most = std::numeric_limits<double>::max();
    stats.gap[j] = std::isfinite(d.hi) ? std::clamp(gap, 0.0, most) : most;
  }
  for (std::size_t j = 0; j < n; ++j) {
    stats.w[j] = std::exp(-stats.gap[j]);
    stats.W += stats.w[j];
  }
  stats.lse = row.scale * stats.m + std::log(stats.W);
  for (std::size_t j = 0; j < n; ++j) {
    const double weight = stats.w[j] / stats.W;  // normalised first: w * v could overflow where O does not
    for (std::size_t e = 0; e < stats.o.size(); ++e) stats.o[e] += weight * row.v[j][e];
  }
  return stats;
}

}  // namespace attest
