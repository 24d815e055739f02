// Running error of the online-softmax step (numerics note, section 5): the state (m, l, acc) relative to its own
// maximum, with bounds of l and acc. m is exact: the maximum of given scores.
#include <algorithm>
#include <cmath>

#include "oracle/arithmetic.h"

namespace attest {
namespace {

// Scores come scaled: where a forward kernel rounds difference and product, a step rounds the difference alone.
double roundings(const Arithmetic& a, double of_forward) {
  return a.contract.exp_form == ATTN_EXP2_FMA ? of_forward : 1;
}

double step_gap_error(const Arithmetic& a) { return a.contract.exp_form == ATTN_EXP2_FMA ? a.gap_error : 0; }

struct KeyWeight {
  double p, error;  // |computed - p| <= error
  double rounding;  // of P, where it is rounded before P.V
};

KeyWeight key_weight(const Arithmetic& a, double m, double score) {
  const double gap = m - score;
  const double offset = a.offset_units * a.u * (1 + 4 * a.u) * std::fabs(m);
  // exp(0) = 1 exactly, and 1 is a number of every format.
  if (gap == 0 && offset == 0) return {1, 0, 0};
  const double rounding = step_gap_error(a) + roundings(a, a.element_rounding) * a.u;
  const double tau = rounding * (gap + offset) * (1 + 4 * a.u) + offset + a.exp_log + a.phi;
  KeyWeight w{};
  w.p = std::exp(-gap);
  // With a gap of thousands and a large tau, exp(-gap) (exp(tau) - 1) would be 0 * inf.
  w.error = tau < 0.5 ? w.p * std::expm1(tau) : std::exp(tau - gap) - w.p;
  w.error = std::max(w.error, 0.0);
  if (gap + tau > -std::log(a.min_normal) - 0.75) w.error += a.exp_floor;
  const double largest = w.p + w.error;
  if (a.p_rounded) {
    // Never by more than the distance from 1, which is a number of every format.
    const double from_one = std::expm1(std::min(gap + tau + offset, 1.0)) * largest;
    w.rounding = std::min(from_one, std::max(a.p_u * largest, std::min(a.p_floor, largest)));
  }
  return w;
}

}  // namespace

StepBound::StepBound(const attn_contract& contract, double m, double l, std::span<const double> acc)
    : contract_(contract), m_(m), l_(l), l_error_(0), a_(acc.begin(), acc.end()), a_error_(acc.size(), 0.0) {
  for (const double x : acc) {
    a_abs_.push_back(std::fabs(x));
    is_nan_.push_back(std::isnan(x));
  }
}

// To the maximum m: a = exp(m_ - m), products with l and acc. Nothing is rounded where the maximum stays.
void StepBound::rescale(double m) {
  const Arithmetic a(contract_);
  const double gap = m - m_;
  const bool empty = m_ == -HUGE_VAL;
  m_ = m;
  if (gap == 0) return;
  const double factor = empty ? 0 : std::exp(-gap);
  const double rounding = step_gap_error(a) + roundings(a, a.rescale_rounding) * a.u;
  const double eta = std::expm1(rounding * gap * (1 + 4 * a.u) + a.rescale_log + a.phi);
  const double k = compound(eta, a.u);
  const double lost = gap > -std::log(a.min_normal) - 0.75 ? a.exp_floor : 0;
  const auto scaled = [&](double value, double error) {
    // exp(-inf) = 0 times the empty state; and a factor of 0 must not meet an infinite error.
    if (empty || value + error == 0) return 0.0;
    if (error == HUGE_VAL) return HUGE_VAL;
    const double relative = factor == 0 ? 0 : factor * (error + k * (value + error));
    return relative + lost * (value + error) + a.phi;
  };
  l_error_ = scaled(std::fabs(l_), l_error_);
  l_ = empty ? 0 : l_ * factor;
  for (std::size_t e = 0; e < a_.size(); ++e) {
    a_error_[e] = scaled(a_abs_[e], a_error_[e]);
    a_[e] = empty ? 0 : a_[e] * factor;
    a_abs_[e] = empty ? 0 : a_abs_[e] * factor;
  }
}

void StepBound::fold(std::span<const double> scores, std::span<const double* const> v) {
  const Arithmetic a(contract_);
  double m = m_;
  for (const double x : scores) {
    if (std::isnan(x) || x == HUGE_VAL || std::isnan(m_)) {
      m_ = std::nan("");  // everything that follows is NaN, and compared by class
      return;
    }
    m = std::max(m, x);
  }
  if (m == -HUGE_VAL) return;
  rescale(m);
  const bool ordered = contract_.sum_order == ATTN_SUM_SEQUENTIAL;
  const bool running = ordered && contract_.pv_accumulation != ATTN_ACC_TENSOR_CORE;
  const bool fused = contract_.pv_accumulation == ATTN_ACC_FMA;
  const std::size_t d = v.empty() ? 0 : a_.size();
  std::int64_t n = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == -HUGE_VAL) continue;
    ++n;
    const KeyWeight w = key_weight(a, m_, scores[j]);
    const bool first = l_ == 0 && l_error_ == 0;  // 0 + p is exact
    l_ += w.p;
    l_error_ += w.error;
    if (ordered && !first) l_error_ += a.u * (std::fabs(l_) + l_error_);
    const double own = w.error + w.rounding, largest = w.p + own;
    for (std::size_t e = 0; e < d; ++e) {
      const double magnitude = std::fabs(v[j][e]);
      a_[e] += w.p * v[j][e];
      a_abs_[e] += w.p * magnitude;
      a_error_[e] += own * magnitude;
      if (std::isnan(magnitude)) is_nan_[e] = true;
      if (!running) continue;
      if (!fused) a_error_[e] += a.u * largest * magnitude + a.phi;
      a_error_[e] += a.u * (std::fabs(a_[e]) + a_error_[e]) + a.phi;
    }
  }
  // In any other order: a tree over the keys and the state that was there.
  if (!ordered) l_error_ += gamma_of(static_cast<double>(n) * a.u) * (std::fabs(l_) + l_error_);
  const std::int64_t lanes = std::max(1, contract_.mma_terms);
  const std::int64_t steps = std::min<std::int64_t>(n, (static_cast<std::int64_t>(scores.size()) + lanes - 1) / lanes);
  const double relative = a.pv_relative(n, steps, 0), floor = a.pv_floor(n, steps);
  if (!(std::fabs(l_) + l_error_ < a.overflow)) l_error_ = HUGE_VAL;
  for (std::size_t e = 0; e < d; ++e) {
    if (!running) a_error_[e] += relative * (a_abs_[e] + a_error_[e]) + floor;
    // Partial sums lie between the negative and the positive part.
    const double partial = 0.5 * (a_abs_[e] + std::fabs(a_[e])) + a_error_[e];
    if (!(partial < a.overflow) && !std::isnan(a_[e])) a_error_[e] = HUGE_VAL;
  }
  operations_ += static_cast<double>(n) + 4;
}

// Errors with an allowance for their own evaluation; a NaN in the state is compared by class.
StateBound StepBound::state() const {
  StateBound s;
  if (std::isnan(m_)) {
    s.acc.assign(a_.size(), 0.0);
    return s;
  }
  const double allowance = 1 + (operations_ + 16) * 0x1p-51;
  s.l = std::isnan(l_) ? 0 : l_error_ * allowance;
  for (std::size_t e = 0; e < a_.size(); ++e) {
    // A NaN that nobody put there is an infinity times a weight that may have underflowed: that admits anything.
    const bool lost = std::isnan(a_[e]) || std::isnan(a_error_[e]);
    s.acc.push_back(is_nan_[e] ? 0 : lost ? HUGE_VAL : a_error_[e] * allowance);
  }
  s.ill_conditioned = !(s.l < std::fabs(l_)) && l_ != 0;
  return s;
}

// acc / l. Errors of weights that both share do not cancel here, as they do in forward_bound.
std::vector<double> StepBound::o() const {
  const Arithmetic a(contract_);
  const StateBound s = state();
  std::vector<double> bound;
  for (std::size_t e = 0; e < a_.size(); ++e) {
    if (std::isnan(m_) || is_nan_[e] || std::isnan(l_) || m_ == -HUGE_VAL) {
      bound.push_back(0);
      continue;
    }
    const double value = std::fabs(a_[e] / l_), least = l_ - s.l;
    double before = (s.acc[e] + value * s.l) / least;
    before += a.division * (value + before) + 2 * a.phi;
    bound.push_back(least > 0 && value + before < a.overflow ? before * (1 + 0x1p-48) : HUGE_VAL);
  }
  return bound;
}

double StepBound::lse() const {
  const Arithmetic a(contract_);
  const StateBound s = state();
  if (std::isnan(m_) || std::isnan(l_) || m_ == -HUGE_VAL) return 0;
  if (!(s.l < l_)) return HUGE_VAL;
  // m is added unscaled; an exp2 kernel multiplies it with constants (5u: section 5's 6u less the frame's offset,
  // which is in l).
  const double units = contract_.exp_form == ATTN_EXP2_FMA ? a.lse_units - a.offset_units : 0;
  const double sum = -std::log1p(-s.l / l_),
               log_l = std::max(std::fabs(std::log(l_ - s.l)), std::fabs(std::log(l_ + s.l)));
  double error = sum + units * a.u * std::fabs(m_) + a.log_error(log_l);
  error += a.u * (std::fabs(m_ + std::log(l_)) + error);
  if (contract_.lse_base == ATTN_LSE_BASE_2) error += (2 * a.u + 0x1p-51) * (std::fabs(m_ + std::log(l_)) + error);
  return error * (1 + 8 * a.u + 0x1p-48) + a.phi;
}

}  // namespace attest
