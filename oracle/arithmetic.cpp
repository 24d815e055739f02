#include "oracle/arithmetic.h"

#include <algorithm>
#include <limits>

namespace attest {
namespace {

double log_of_error(double eps) { return eps < 1 ? eps / (1 - eps) : HUGE_VAL; }

bool representable(double x, const FormatFacts& f) {
  int exponent = 0;
  const double significand = std::ldexp(std::frexp(x, &exponent), f.precision);
  return significand == std::nearbyint(significand) && exponent - 1 >= f.min_exponent && std::fabs(x) <= f.max;
}

}  // namespace

double overflow_threshold(DType format) {
  const FormatFacts f = facts(format);
  // max + half an ulp; beyond the range of double, max itself.
  const double t = f.max + std::ldexp(f.u, std::ilogb(f.max));
  return std::isfinite(t) ? t : f.max;
}

double half_ulp(DType format, double y) {
  const FormatFacts f = facts(format);
  y = std::fabs(y);
  if (!std::isfinite(y)) return HUGE_VAL;
  const int e = y > 0 ? std::max(std::ilogb(y), f.min_exponent) : f.min_exponent;
  return std::max(std::ldexp(1.0, e - f.precision), std::numeric_limits<double>::denorm_min());
}

double output_rounding(const attn_contract& contract, DType out, double y) {
  const double h = half_ulp(out, y);
  // Conversion to binary16 keeps subnormals even where arithmetic flushes them (cvt.rn.f16, VCVTPS2PH).
  if (!contract.flushes_subnormals || out == DType::fp16) return h;
  const double smallest = std::ldexp(1.0, facts(out).min_exponent);
  return std::max(h, std::min(std::fabs(y), smallest));
}

Arithmetic::Arithmetic(const attn_contract& c, double scale) : contract(c) {
  const DType acc = dtype_of(c.acc_dtype);
  const FormatFacts f = facts(acc);
  const bool flush = c.flushes_subnormals != 0;
  u = f.u;
  min_normal = std::ldexp(1.0, f.min_exponent);
  phi = flush ? min_normal : f.half_subnormal;
  overflow = overflow_threshold(acc);
  const double eps = c.exp_error * u, eps_r = c.rescale_exp_error * u;
  exp_log = log_of_error(eps);
  rescale_log = log_of_error(eps_r);
  merge_log = std::max(exp_log, rescale_log);
  // Below the normal range an exp is good to as many ulps as above it, and those have stopped shrinking.
  exp_floor = flush ? min_normal * (1 + eps) : std::max(eps, eps_r) * min_normal + phi;
  division = c.division_error * u;

  p_rounded = c.p_dtype != c.acc_dtype;
  const DType p = dtype_of(c.p_dtype);
  const FormatFacts pf = facts(p);
  p_u = p_rounded ? pf.u : 0;
  p_floor = p_rounded ? pf.half_subnormal : 0;
  if (p_rounded && flush && p != DType::fp16) p_floor = std::ldexp(1.0, pf.min_exponent);
  p_overflow = overflow_threshold(p);

  // Below the normal range a narrowed scale is off by half a subnormal, not by u of itself.
  narrowed = c.scale_narrowed && !representable(scale, f) ? std::max(u, f.half_subnormal / scale) : 0;
  lazy = c.rescale == ATTN_RESCALE_LAZY ? c.lazy_threshold * M_LN2 * (1 + 8 * u) : 0;
  switch (c.exp_form) {
    case ATTN_EXP2_FMA:
      // c2 = fl(fl(s) fl(log2 e)): constant and product; element fl(x c2 - fl(m c2)); rescale fl(fl(m - m') c2).
      gap_error = 2 * u * (1 + u) + narrowed;
      element_rounding = 1;
      rescale_rounding = 2;
      offset_units = 1;
      // h = 2 of c2, 2 of c2 ln 2, the product, and the offset fl(m c2): note, section 5.
      lse_units = 6 + (narrowed > 0 ? 1 : 0);
      break;
    case ATTN_EXP_SCALED:
      // The scaling itself is an error of the score (forward_weights.cpp); only a difference is rounded here.
      gap_error = 0;
      element_rounding = rescale_rounding = 1;
      offset_units = lse_units = 0;
      break;
    default:  // ATTN_EXP_DIFFERENCE: difference and product
      gap_error = narrowed;
      element_rounding = rescale_rounding = 2;
      offset_units = 0;
      lse_units = 1 + (narrowed > 0 ? 1 : 0);
  }
}

// One step aligns its terms to 2^(emax - F) and truncates: each of at most L loses less than 2^-F of the largest
// magnitude, the largest itself nothing; then the sum is truncated to 24 bits, 2u of it (note, section 1).
double Arithmetic::mma_relative(std::int64_t terms, std::int64_t steps) const {
  return static_cast<double>(terms) * std::ldexp(1.0, -contract.mma_fraction_bits) + static_cast<double>(steps) * 2 * u;
}

// The alignment exponent is never below that of the smallest normal number, and truncation loses a whole subnormal.
double Arithmetic::mma_floor(std::int64_t steps) const {
  const double per_step = contract.mma_terms * std::ldexp(min_normal, -contract.mma_fraction_bits) + 2 * phi;
  return static_cast<double>(steps) * per_step;
}

// A sum of subnormals is exact unless it is flushed: one underflow per term, two where product and sum can each flush.
double Arithmetic::scalar_floor(std::int64_t n, std::int32_t accumulation) const {
  const bool twice = contract.flushes_subnormals != 0 && accumulation != ATTN_ACC_FMA;
  return static_cast<double>(n) * phi * (twice ? 2 : 1);
}

double Arithmetic::dot_relative(std::int64_t d) const {
  if (contract.qk_accumulation != ATTN_ACC_TENSOR_CORE) return gamma_of(static_cast<double>(d) * u);
  const std::int64_t terms = std::max(1, contract.mma_terms);
  return gamma_of(mma_relative(d, (d + terms - 1) / terms));
}

double Arithmetic::dot_floor(std::int64_t d) const {
  if (contract.qk_accumulation != ATTN_ACC_TENSOR_CORE) return scalar_floor(d, contract.qk_accumulation);
  const std::int64_t terms = std::max(1, contract.mma_terms);
  return mma_floor((d + terms - 1) / terms);
}

double Arithmetic::pv_relative(std::int64_t n, std::int64_t steps, std::int64_t rescales) const {
  const double r = static_cast<double>(rescales) * u;
  if (contract.pv_accumulation == ATTN_ACC_TENSOR_CORE) return gamma_of(mma_relative(n, steps) + r);
  // n additions; a separate product is one rounding more on the path of each term.
  const double path = static_cast<double>(n) + (contract.pv_accumulation == ATTN_ACC_FMA ? 0 : 1);
  return gamma_of(path * u + r);
}

double Arithmetic::pv_floor(std::int64_t n, std::int64_t steps) const {
  if (contract.pv_accumulation == ATTN_ACC_TENSOR_CORE) return mma_floor(steps);
  return scalar_floor(n, contract.pv_accumulation);
}

double Arithmetic::log_error(double log_l) const {
  return u * std::max(contract.log_absolute, contract.log_relative * std::fabs(log_l));
}

}  // namespace attest
