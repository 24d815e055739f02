// The double-double tier: the formulas of the fp64 tier with compensated sums (Ogita, Rump, Oishi, "Accurate sum and
// dot product", 2005) in place of plain ones. TRUTH.md derives the radii.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "oracle/double_double.h"
#include "oracle/softmax_tier.h"

namespace attest {
namespace {

constexpr double u = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t dot_lanes = 2 * lane_count;  // independent accumulators of a dot product

// A compensated sum of n products: |s + c - exact| <= compensated(n) * sum |terms|, and n * 2^-1073 for subnormals.
// c collects n rounding errors, each at most u times a partial sum, through n + 2 additions of its own.
double compensated(std::int64_t n) {
  const double nu = static_cast<double>(n + 3) * u;
  return nu * nu * (1 + 4 * nu);
}

struct Dot {
  DoubleDouble value;
  double magnitude;
};

Dot dot(const double* q, const double* k, std::int64_t d) {
  Lanes s[2] = {}, c[2] = {}, a[2] = {};
  const auto step = [&](int t, Lanes x, Lanes y) {
    const auto p = two_prod(x, y), sum = two_sum(s[t], p.hi);
    s[t] = sum.hi;
    c[t] += sum.lo + p.lo;
    a[t] += magnitude(p.hi);
  };
  std::int64_t i = 0;
  for (; i + dot_lanes <= d; i += dot_lanes)
    for (int t = 0; t < 2; ++t) step(t, load_lanes(q + i + t * lane_count), load_lanes(k + i + t * lane_count));
  for (; i + lane_count <= d; i += lane_count) step(0, load_lanes(q + i), load_lanes(k + i));
  if (i < d) step(0, load_lanes(q + i, d - i), load_lanes(k + i, d - i));
  const auto x = add(two_sum(s[0], c[0]), two_sum(s[1], c[1]));
  DoubleDouble sum = {x.hi[0], x.lo[0]};
  for (int t = 1; t < lane_count; ++t) sum = add(sum, DoubleDouble{x.hi[t], x.lo[t]});
  return {sum, sum_of_lanes(a[0] + a[1])};
}

// s[e] + c[e] += w_j v_j[e], compensated.
void accumulate(double w, double w_low, const double* __restrict v, std::int64_t width, double* __restrict s,
                double* __restrict c) {
  for (std::int64_t e = 0; e < width; ++e) {
    const double p = w * v[e], low = std::fma(w, v[e], -p);
    const double sum = s[e] + p, z = sum - s[e];
    const double rest = ((s[e] - (sum - z)) + (p - z)) + low;
    c[e] += std::fma(w_low, v[e], rest);
    s[e] = sum;
  }
}

// w + w_low = exp(-(gap + gap_low)). Arrays padded to a multiple of lane_count.
void exponentials(const std::vector<double>& gap, const std::vector<double>& gap_low, std::vector<double>& w,
                  std::vector<double>& w_low) {
  for (std::size_t j = 0; j < gap.size(); j += lane_count) {
    const auto r = exp_dd(BasicDoubleDouble<Lanes>{-load_lanes(&gap[j]), -load_lanes(&gap_low[j])});
    store_lanes(&w[j], r.hi);
    store_lanes(&w_low[j], r.lo);
  }
}

class DoubleDoubleTier final : public SoftmaxTier {
 public:
  explicit DoubleDoubleTier(const Row& row) : scale_(row.scale) {
    const std::int64_t n = row.size(), d = row.d_qk;
    std::vector<DoubleDouble> x(n);
    std::vector<double> error(n);
    const double relative = compensated(d / dot_lanes + (d % dot_lanes + lane_count - 1) / lane_count) +
                            13 * u * u;  // one lane with its tail, then at most four sums of lanes
    const double slack = 1 + static_cast<double>(d + 8) * 2 * u, floor = static_cast<double>(d + 1) * 0x1p-1072;
    for (std::int64_t j = 0; j < n; ++j) {
      const Dot r = dot(row.q, row.k[j], d);
      x[j] = r.value;
      error[j] = scale_ * (relative * slack * r.magnitude + floor);
      usable_ = usable_ && r.magnitude < 0x1p1000;
    }
    weigh(x, error, 6 * u * u);
  }

  explicit DoubleDoubleTier(std::span<const double> scores) {
    std::vector<DoubleDouble> x;
    for (double s : scores) x.push_back({s, 0});
    weigh(x, std::vector<double>(scores.size(), 0.0), 3 * u * u);
  }

  void means(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    if (v.size() == 1) return copy(v[0] + first, out);
    const std::vector<DoubleDouble> sum = weighted_sums(v, first, out.size());
    std::vector<double> centre(out.size()), spread(out.size());
    std::vector<DoubleDouble> mean(out.size());
    for (std::size_t e = 0; e < out.size(); ++e) {
      mean[e] = div(sum[e], total_);
      centre[e] = mean[e].hi;
    }
    deviations(deviation_weight_, v, first, centre, spread);
    const double n = static_cast<double>(v.size());
    const double denominator = total_.hi * (1 - 4 * u - 2 * chain_error_) - total_error_;
    for (std::size_t e = 0; e < out.size(); ++e) {
      // |v - o^| <= |v - o^.hi| + u |o^|; division 15u^2
      const double own =
          total_.hi * (3 * chain_error_ + 16 * u * u) + 2 * u * (total_error_ + chain_error_ * total_.hi);
      const double numerator =
          spread[e] + std::fabs(centre[e]) * own + (2 * n + 16) * 0x1p-1074 * std::max(1.0, total_.hi);
      out[e] = element(mean[e], numerator / denominator);
    }
  }

  void sums(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    if (v.size() == 1 && weight_error_[0] == 0) return copy(v[0] + first, out);
    const std::vector<DoubleDouble> value = weighted_sums(v, first, out.size());
    const std::vector<double> centre(out.size(), 0.0);
    std::vector<double> spread(out.size());
    deviations(deviation_weight_, v, first, centre, spread);
    for (std::size_t e = 0; e < out.size(); ++e)
      out[e] = element(value[e], spread[e] + 2 * static_cast<double>(v.size()) * 0x1p-1074);
  }

  TruthElement log_sum() const override {
    const double theta = total_error_ / total_.hi + 2 * chain_error_;
    const bool one = total_.hi == 1 && total_.lo == 0;  // log 1 = 0 is exact
    const DoubleDouble log_total = one ? DoubleDouble{} : log_dd(total_);
    const DoubleDouble shift = scale_ == 1 ? shift_ : mul(shift_, scale_), value = add(shift, log_total);
    const double radius =
        theta / (1 - theta) + frame_.shift + (one ? 0 : log_dd_error + 4 * u * u * std::fabs(log_total.hi)) +
        (scale_ == 1 ? 0 : 2 * u * u * std::fabs(shift.hi) + 0x1p-1073) + (one ? 0 : 4 * u * u * std::fabs(value.hi));
    return element(value, radius);
  }

 private:
  // gap_error: relative error of a computed gap. Equal scores give gap 0 and weight 1 exactly.
  void weigh(const std::vector<DoubleDouble>& x, const std::vector<double>& error, double gap_error) {
    const std::size_t n = x.size();
    const auto top = static_cast<std::size_t>(
        std::max_element(x.begin(), x.end(),
                         [](DoubleDouble a, DoubleDouble b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }) -
        x.begin());
    shift_ = x[top];
    frame_ = error_frame(error, static_cast<std::int64_t>(top));
    const std::size_t padded = (n + lane_count - 1) / lane_count * lane_count;
    std::vector<double> gap(padded), gap_low(padded), tau(n);
    for (std::size_t j = 0; j < n; ++j) {
      const DoubleDouble d = add(shift_, negate(x[j])), computed = scale_ == 1 ? d : mul(d, scale_);
      const double own = j == top ? frame_.top : error[j] + frame_.others;
      const Gap g = gap_of(computed.hi, gap_error, own + (computed.hi == 0 ? 0 : exp_dd_error));
      gap[j] = g.gap, tau[j] = g.tau;
      gap_low[j] = g.gap == computed.hi ? computed.lo : 0;
    }
    w_.resize(padded), w_low_.resize(padded), weight_error_.resize(n), deviation_weight_.resize(n);
    exponentials(gap, gap_low, w_, w_low_);
    chain_error_ = n == 1 ? 0 : compensated(static_cast<std::int64_t>(n));
    double s = 0, c = 0;
    for (std::size_t j = 0; j < n; ++j) {
      weight_error_[j] = weight_error(w_[j], gap[j], tau[j]) * (1 + 2 * u);
      deviation_weight_[j] = weight_error_[j] + chain_error_ * w_[j] * (1 + 2 * u);
      total_error_ += weight_error_[j];
      const DoubleDouble t = two_sum(s, w_[j]);
      s = t.hi;
      c += t.lo + w_low_[j];
    }
    total_ = two_sum(s, c);
    usable_ = usable_ && total_error_ <= 0.25 * total_.hi;  // also false for NaN
  }

  std::vector<DoubleDouble> weighted_sums(std::span<const double* const> v, std::int64_t first,
                                          std::size_t width) const {
    std::vector<double> s(width, 0.0), c(width, 0.0);
    for (std::size_t j = 0; j < v.size(); ++j)
      accumulate(w_[j], w_low_[j], v[j] + first, static_cast<std::int64_t>(width), s.data(), c.data());
    std::vector<DoubleDouble> result(width);
    for (std::size_t e = 0; e < width; ++e) result[e] = two_sum(s[e], c[e]);
    return result;
  }

  TruthElement element(DoubleDouble value, double radius) const {
    if (!usable_ || !std::isfinite(value.hi) || !std::isfinite(value.lo)) return {TruthKind::finite, 0, 0, infinity};
    return {TruthKind::finite, value.hi, value.lo, certified(radius, static_cast<std::int64_t>(weight_error_.size()))};
  }

  static void copy(const double* v, std::span<TruthElement> out) {
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = {TruthKind::finite, v[e], 0, 0};
  }

  double scale_ = 1;
  Frame frame_;
  DoubleDouble shift_, total_;
  double total_error_ = 0, chain_error_ = 0;
  std::vector<double> w_, w_low_, weight_error_, deviation_weight_;
  bool usable_ = true;
};

}  // namespace

std::unique_ptr<SoftmaxTier> make_double_double_tier(const Row& row) { return std::make_unique<DoubleDoubleTier>(row); }
std::unique_ptr<SoftmaxTier> make_double_double_tier(std::span<const double> scores) {
  return std::make_unique<DoubleDoubleTier>(scores);
}

}  // namespace attest
