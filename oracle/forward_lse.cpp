// Bound of LSE = s m + log l, natural log units.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

// Largest |log(sum of weights in error / sum of weights)|: the common shift that O never sees.
double weight_sum_error(const RowStats& stats, const ForwardTerms& t) {
  const std::size_t n = t.tau.size();
  double up = 0, down = 0, largest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const double tau = t.tau_lse[j];
    largest = std::max(largest, tau);
    up += stats.w[j] * std::expm1(std::min(tau, 0.5)) + t.true_floor(j);
    down += stats.w[j] * -std::expm1(-tau) + t.true_floor(j);
  }
  if (largest < 0.5 && down < stats.W) return std::max(std::log1p(up / stats.W), -std::log1p(-down / stats.W));
  double shift = -HUGE_VAL, low_shift = -HUGE_VAL;
  for (std::size_t j = 0; j < n; ++j) {
    shift = std::max(shift, t.tau_lse[j] - stats.gap[j]);
    low_shift = std::max(low_shift, -t.tau_lse[j] - stats.gap[j]);
  }
  double high = 0, low = 0;
  for (std::size_t j = 0; j < n; ++j) {
    high += std::exp(t.tau_lse[j] - stats.gap[j] - shift);
    low += std::exp(-t.tau_lse[j] - stats.gap[j] - low_shift);
  }
  const double log_w = std::log(stats.W);
  double floors = 0;  // of the sum that was computed
  for (const double f : t.floor) floors += f * t.inverse_sum;
  if (!(floors < 0.5)) return HUGE_VAL;
  return std::max(shift + std::log(high) - log_w, log_w - low_shift - std::log(low)) - std::log1p(-floors);
}

}  // namespace

double lse_bound(const Arithmetic& a, const RowStats& stats, const ForwardTerms& t) {
  double shift = weight_sum_error(stats, t);
  const bool split = a.contract.algorithm == ATTN_ALG_SPLIT;
  double scaled_max = 0, end = 0;
  for (const Segment& s : t.segments) scaled_max = std::max(scaled_max, std::fabs(s.scaled_max));
  if (!split) {
    // However wrong the weights, l holds the maximum's own 1 and at most n of them.
    const double n = static_cast<double>(t.tau.size());
    end = a.offset_units * a.u * (1 + 4 * a.u) * (scaled_max + t.delta_max + a.lazy);
    // Not std::min: where the shift is a NaN, what always holds is what is left.
    const double always = t.delta_max + std::log(n) + 2 * (a.exp_log + end) + 2 * a.lazy;
    shift = shift + end < always ? shift + end : always;
  }
  // l itself is summed; then its log, and s m + log l. Splits did that already, each for itself: what they add here is
  // the merge, max + log sum exp(lse_b - max).
  const double sum = split ? t.sigma + gamma_of(t.parts * a.u) : t.sigma;
  double error = shift - std::log1p(-std::min(sum, 0.5));
  if (!(sum < 0.5)) return HUGE_VAL;
  if (split) {
    error += a.log_error(std::log(t.parts) + error);
  } else {
    const double units = a.lse_units - a.offset_units;  // the offset of the last frame is in the shift
    error += units * a.u * (scaled_max + t.delta_max + a.lazy) + a.log_error(std::log(stats.W) + error + a.lazy);
  }
  error += a.u * (std::fabs(stats.lse) + error);
  // A base-2 LSE is one constant and one product away, and is judged after a product with ln 2 in double.
  if (a.contract.lse_base == ATTN_LSE_BASE_2) error += (2 * a.u + 0x1p-51) * (std::fabs(stats.lse) + error);
  return error + a.phi;
}

}  // namespace attest
