// The fp64 tier: two passes in double, each result with a radius. TRUTH.md derives the formulas.
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
constexpr std::int64_t dot_lanes = 4 * lane_count;  // independent accumulators of a dot product
constexpr std::int64_t key_block = 128;             // keys summed in one chain before the partial sums are added

// n roundings in a row: gamma_n = n u / (1 - n u), rounded up.
double gamma(std::int64_t n) {
  const double nu = static_cast<double>(n) * u;
  return nu / (1 - nu) * (1 + 4 * u);
}

struct Dot {
  double value, magnitude;  // sum q_i k_i, sum |q_i k_i|
};

// Every term passes at most this many roundings: its own lane, the tail, the sum of all lanes.
constexpr std::int64_t dot_roundings(std::int64_t d) {
  return d / dot_lanes + (d % dot_lanes + lane_count - 1) / lane_count + 2 + (lane_count - 1);
}

Dot dot(const double* q, const double* k, std::int64_t d) {
  Lanes s[4] = {}, a[4] = {};
  const auto step = [&](int t, Lanes x, Lanes y) {
    s[t] = fused(x, y, s[t]);
    a[t] = fused(magnitude(x), magnitude(y), a[t]);
  };
  std::int64_t i = 0;
  for (; i + dot_lanes <= d; i += dot_lanes)
    for (int t = 0; t < 4; ++t) step(t, load_lanes(q + i + t * lane_count), load_lanes(k + i + t * lane_count));
  for (; i + lane_count <= d; i += lane_count) step(0, load_lanes(q + i), load_lanes(k + i));
  if (i < d) step(0, load_lanes(q + i, d - i), load_lanes(k + i, d - i));
  return {sum_of_lanes((s[0] + s[1]) + (s[2] + s[3])), sum_of_lanes((a[0] + a[1]) + (a[2] + a[3]))};
}

// out[e] += sum over keys of w_j v_j[e]; four keys at a time keep the accumulators in registers.
void accumulate(const double* w, const double* const* v, std::int64_t n, std::int64_t first, std::span<double> out) {
  double* __restrict sum = out.data();
  const auto width = static_cast<std::int64_t>(out.size());
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double *v0 = v[j] + first, *v1 = v[j + 1] + first, *v2 = v[j + 2] + first, *v3 = v[j + 3] + first;
    for (std::int64_t e = 0; e < width; ++e)
      sum[e] = std::fma(w[j + 3], v3[e],
                        std::fma(w[j + 2], v2[e], std::fma(w[j + 1], v1[e], std::fma(w[j], v0[e], sum[e]))));
  }
  for (; j < n; ++j)
    for (std::int64_t e = 0; e < width; ++e) sum[e] = std::fma(w[j], v[j][first + e], sum[e]);
}

class Fp64Tier final : public SoftmaxTier {
 public:
  explicit Fp64Tier(const Row& row) : scale_(row.scale) {
    const std::int64_t n = row.size();
    std::vector<double> x(n), error(n);
    const double g = gamma(dot_roundings(row.d_qk));
    const double floor = static_cast<double>(row.d_qk + 1) * 0x1p-1073;
    for (std::int64_t j = 0; j < n; ++j) {
      const Dot r = dot(row.q, row.k[j], row.d_qk);
      x[j] = r.value;
      error[j] = scale_ * (g * (1 + 4 * g) * r.magnitude + floor);
      usable_ = usable_ && r.magnitude < 0x1p1000;
    }
    weigh(x, error, 3 * u);
  }

  explicit Fp64Tier(std::span<const double> scores) {
    weigh({scores.begin(), scores.end()}, std::vector<double>(scores.size(), 0.0), u * (1 + 4 * u));
  }

  void means(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    if (v.size() == 1) return copy(v[0] + first, out);
    std::vector<double> value = weighted_sums(v, first, out.size());
    for (double& x : value) x /= total_;
    std::vector<double> spread(out.size());
    deviations(deviation_weight_, v, first, value, spread);
    const auto n = static_cast<std::int64_t>(v.size());
    const double denominator = total_ * (1 - 2 * chain_error_) - total_error_;
    for (std::size_t e = 0; e < out.size(); ++e) {
      const double numerator = spread[e] +
                               std::fabs(value[e]) * total_ * (2 * chain_error_ * (1 + 2 * chain_error_) + u) +
                               static_cast<double>(n + 4) * 0x1p-1074 * std::max(1.0, total_);
      out[e] = element(value[e], numerator / denominator, n);
    }
  }

  void sums(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    if (v.size() == 1 && weight_error_[0] == 0) return copy(v[0] + first, out);
    const std::vector<double> value = weighted_sums(v, first, out.size()), centre(out.size(), 0.0);
    std::vector<double> spread(out.size());
    deviations(deviation_weight_, v, first, centre, spread);
    const auto n = static_cast<std::int64_t>(v.size());
    for (std::size_t e = 0; e < out.size(); ++e)
      out[e] = element(value[e], spread[e] + static_cast<double>(n) * 0x1p-1074, n);
  }

  TruthElement log_sum() const override {
    const DoubleDouble shift = two_prod(scale_, shift_);
    const double log_total = std::log(total_), theta = total_error_ / total_ + 2 * chain_error_;
    const DoubleDouble s = two_sum(shift.hi, log_total), r = two_sum(s.hi, s.lo + shift.lo);
    // 1 ulp of log, and the rounding of the low parts; log 1 = 0 is exact
    const double radius = theta / (1 - theta) + frame_.shift + 2 * u * std::fabs(log_total) +
                          2 * u * std::fabs(s.lo + shift.lo) + (scale_ == 1 ? 0 : 0x1p-1074);
    TruthElement t = element(r.hi, radius, static_cast<std::int64_t>(w_.size()));
    t.lo = std::isfinite(t.radius) ? r.lo : 0;
    return t;
  }

 private:
  // gap_error: relative error of a computed gap. The exponent's own budget is 1 ulp <= 2u; exp(0) = 1 is exact.
  void weigh(const std::vector<double>& x, const std::vector<double>& error, double gap_error) {
    const auto n = static_cast<std::int64_t>(x.size());
    const auto top = std::max_element(x.begin(), x.end()) - x.begin();
    shift_ = x[top];
    frame_ = error_frame(error, top);
    w_.resize(n), weight_error_.resize(n), deviation_weight_.resize(n);
    for (std::int64_t j = 0; j < n; ++j) {
      const double raw = scale_ * (shift_ - x[j]), own = j == top ? frame_.top : error[j] + frame_.others;
      const Gap g = gap_of(raw, gap_error, own + (raw > 0 ? 3 * u : 0));
      w_[j] = std::exp(-g.gap);
      weight_error_[j] = weight_error(w_[j], g.gap, g.tau);
    }
    chain_error_ = n == 1 ? 0 : gamma(std::min(n, key_block) + n / key_block + 1);
    for (std::int64_t b = 0; b < n; b += key_block) {
      double part = 0;
      for (std::int64_t j = b; j < std::min(n, b + key_block); ++j) {
        part += w_[j];
        total_error_ += weight_error_[j];
        deviation_weight_[j] = weight_error_[j] + chain_error_ * w_[j];
      }
      total_ += part;
    }
    usable_ = usable_ && total_error_ <= 0.25 * total_;  // also false for NaN
  }

  std::vector<double> weighted_sums(std::span<const double* const> v, std::int64_t first, std::size_t width) const {
    std::vector<double> total(width, 0.0), part(width);
    const auto n = static_cast<std::int64_t>(v.size());
    for (std::int64_t b = 0; b < n; b += key_block) {
      std::fill(part.begin(), part.end(), 0.0);
      accumulate(w_.data() + b, v.data() + b, std::min(key_block, n - b), first, part);
      for (std::size_t e = 0; e < width; ++e) total[e] += part[e];
    }
    return total;
  }

  TruthElement element(double value, double radius, std::int64_t n) const {
    if (!usable_ || !std::isfinite(value)) return {TruthKind::finite, 0, 0, infinity};
    return {TruthKind::finite, value, 0, certified(radius, n)};
  }

  static void copy(const double* v, std::span<TruthElement> out) {
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = {TruthKind::finite, v[e], 0, 0};
  }

  Frame frame_;
  double scale_ = 1, shift_ = 0, total_ = 0, total_error_ = 0, chain_error_ = 0;
  std::vector<double> w_, weight_error_, deviation_weight_;
  bool usable_ = true;
};

}  // namespace

Frame error_frame(std::span<const double> error, std::int64_t top) {
  if (error[top] <= 0x1p-10) return {error[top], 0, 0};
  return {0, error[top], error[top]};
}

Gap gap_of(double computed, double relative, double absolute) {
  if (computed <= 1e5) return {computed, (relative * computed + absolute) * (1 + 8 * u)};
  // Here the weight is 0, as for every gap beyond 745. NaN is an overflow inside of double-double.
  const double largest = std::numeric_limits<double>::max();
  const double least = (computed < largest ? computed : largest) * (1 - 0x1p-20) - absolute;
  return {1e5, least > 1e5 ? 0 : (relative * 1e5 + absolute) * (1 + 8 * u)};
}

double weight_error(double w, double gap, double tau) {
  if (tau == 0 && gap == 0) return 0;
  if (tau <= 0.25) return w * (tau + tau * tau) + 0x1p-1073;  // e^tau - 1 <= tau + tau^2
  // Log domain: neither w e^tau (0 * inf) nor the difference of two large numbers may turn into NaN.
  const double top = tau - gap;
  if (!(top < 700)) return infinity;
  return std::max(w, std::exp(top) * (1 + 0x1p-30)) + 0x1p-1073;
}

double certified(double radius, std::int64_t terms) {
  const double r = radius * (1 + static_cast<double>(terms + 32) * 0x1p-51);
  const double floored = r > 0 ? r + static_cast<double>(terms + 32) * 0x1p-1074 : r;
  return floored < infinity && floored >= 0 ? floored : infinity;
}

void deviations(std::span<const double> rho, std::span<const double* const> v, std::int64_t first,
                std::span<const double> centre, std::span<double> out) {
  double* __restrict sum = out.data();
  const double* __restrict c = centre.data();
  const auto width = static_cast<std::int64_t>(out.size());
  std::fill(out.begin(), out.end(), 0.0);
  const auto n = static_cast<std::int64_t>(v.size());
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double *v0 = v[j] + first, *v1 = v[j + 1] + first, *v2 = v[j + 2] + first, *v3 = v[j + 3] + first;
    const double r0 = rho[j], r1 = rho[j + 1], r2 = rho[j + 2], r3 = rho[j + 3];
    for (std::int64_t e = 0; e < width; ++e) {
      double t = std::fma(r0, std::fabs(v0[e] - c[e]), sum[e]);
      t = std::fma(r1, std::fabs(v1[e] - c[e]), t);
      t = std::fma(r2, std::fabs(v2[e] - c[e]), t);
      sum[e] = std::fma(r3, std::fabs(v3[e] - c[e]), t);
    }
  }
  for (; j < n; ++j)
    for (std::int64_t e = 0; e < width; ++e) sum[e] = std::fma(rho[j], std::fabs(v[j][first + e] - c[e]), sum[e]);
}

std::unique_ptr<SoftmaxTier> make_fp64_tier(const Row& row) { return std::make_unique<Fp64Tier>(row); }
std::unique_ptr<SoftmaxTier> make_fp64_tier(std::span<const double> scores) {
  return std::make_unique<Fp64Tier>(scores);
}

}  // namespace attest
