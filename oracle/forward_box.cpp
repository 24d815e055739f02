// The box form: the exact extremum of sum c (v - o) / sum c over weights c within their log-weight errors. It is never
// vacuous: where the linear form dies it tends to the hull of V. Weights are shifted by the largest log weight, since
// gaps and errors can both be far beyond the range of exp.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

constexpr int max_passes = 60;             // threshold iteration: about 20 are seen
constexpr double smallest_sum = 0x1p-600;  // of weights: products that underflow are nothing beside it

struct Box {
  std::vector<double> low, high;  // weight intervals, up to one common factor
};

Box make_box(const RowStats& stats, const ForwardTerms& t) {
  const std::size_t n = t.tau.size();
  double shift = -HUGE_VAL;
  for (std::size_t j = 0; j < n; ++j) shift = std::max(shift, t.tau[j] - stats.gap[j]);
  Box b;
  b.low.resize(n);
  b.high.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    b.high[j] = std::exp(t.tau[j] - stats.gap[j] - shift);
    b.low[j] = std::exp(-t.tau[j] - stats.gap[j] - shift);
  }
  return b;
}

struct Extremum {
  std::vector<double> ratio;  // per column
  std::vector<double> top;    // largest f: what the ratio tends to when weights are free
};

// Largest value of sum c f_j / sum c for every column, f_j(e) = value(j, e): c_j is high where f_j > z, low elsewhere,
// and z rises to the root of g(z) = sum c (f_j - z) (Dinkelbach), from any start below it. It is g that says whether z
// must rise, not whether the next z differs: a key an ulp above z can hold z down by rounding, and behind it waits a
// far one of small weight. So z rises by an ulp at least wherever g > 0. Where all weights that count are too small to
// divide by, or passes run out, the largest f bounds the ratio.
template <class Value>
Extremum largest_ratio(const Box& box, std::int64_t d, const Value& value) {
  const std::int64_t n = static_cast<std::int64_t>(box.low.size());
  std::vector<double> z(d, -HUGE_VAL), top(d, -HUGE_VAL), up(d), down(d);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t e = 0; e < d; ++e) top[e] = std::max(top[e], value(j, e));
  }
  bool rising = true;
  for (int pass = 0; rising; ++pass) {
    std::fill(up.begin(), up.end(), 0.0);
    std::fill(down.begin(), down.end(), 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
      const double high = box.high[j], low = box.low[j];
      for (std::int64_t e = 0; e < d; ++e) {
        const double f = value(j, e);
        const double c = f > z[e] ? high : low;
        up[e] += c * (pass == 0 ? f : f - z[e]);
        down[e] += c;
      }
    }
    rising = false;
    for (std::int64_t e = 0; e < d; ++e) {
      double next = top[e];
      if (down[e] > smallest_sum) {
        const double step = up[e] / down[e];
        next = pass == 0 ? step : z[e] + step;
        if (pass > 0 && up[e] > 0) next = std::max(next, std::nextafter(z[e], HUGE_VAL));
      }
      if (next > z[e] && pass >= max_passes) next = top[e];
      if (next > z[e] && z[e] < top[e]) {
        rising = true;
        z[e] = std::min(next, top[e]);
      }
    }
  }
  return {z, top};
}

}  // namespace

BoxBound box_bound(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t) {
  const std::int64_t n = row.size(), d = row.d_v;
  const Box box = make_box(stats, t);
  const double* o = stats.o.data();
  const auto above = largest_ratio(box, d, [&](std::int64_t j, std::int64_t e) { return row.v[j][e] - o[e]; });
  const auto below = largest_ratio(box, d, [&](std::int64_t j, std::int64_t e) { return o[e] - row.v[j][e]; });
  const auto own = largest_ratio(box, d, [&](std::int64_t j, std::int64_t e) {
    return (t.p_unit[j] + (1 + t.p_unit[j]) * t.alpha[j]) * std::fabs(row.v[j][e]);
  });
  // Absolute errors of weights do not shrink with the weight: apart, over the smallest sum that can be computed. There
  // is nothing of the scores' errors in that sum, so that this stays small when the box has become the hull.
  std::vector<double> floor(d, t.floor_error);
  if (a.p_rounded) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (t.p_unit[j] < a.p_u) continue;
      const double largest = std::exp(t.tau[j] - stats.gap[j] + t.log_frame) + t.floor[j];
      const double lost = std::min(a.p_floor, largest) * t.inverse_sum * (1 + t.alpha[j]);
      for (std::int64_t e = 0; e < d; ++e) floor[e] += lost * std::fabs(row.v[j][e]);
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const double lost = t.floor[j] * t.inverse_sum, alpha = t.alpha[j];
    if (lost == 0) continue;
    for (std::int64_t e = 0; e < d; ++e) {
      const double v = row.v[j][e];
      floor[e] += lost * (std::fabs(v - o[e]) + alpha * std::fabs(v));
    }
  }
  BoxBound b;
  b.half_width.resize(d);
  b.bound.resize(d);
  // g of largest_ratio() is wrong by at most (n + 2) u sum c |f - z|. Where it is taken for 0, its positive part equals
  // its negative one, whose keys keep their low weights up to the root: so the root is missed by at most 2 (n + 2) u
  // times the hull's width. The rest is for o, a double whose weights are off by the error of the gaps, and for the
  // quotients.
  const double rounding = static_cast<double>(2 * n + 16) * 0x1p-52 + 4 * stats.gap_error;
  for (std::int64_t e = 0; e < d; ++e) {
    const double missed = rounding * above.top[e] + rounding * below.top[e] + rounding * std::fabs(o[e]);
    const double width = std::max({above.ratio[e], below.ratio[e], 0.0}) + missed;
    b.half_width[e] = width;
    const double sum = width + std::max(own.ratio[e], 0.0) * (1 + rounding) + t.sigma * std::fabs(o[e]);
    b.bound[e] = t.sigma < 1 ? sum / (1 - t.sigma) + floor[e] : HUGE_VAL;
  }
  return b;
}

}  // namespace attest
