// The exps and logs that variants use, with the relative error that each declares, in u of its format.
#pragma once

#include <cmath>
#include <limits>

#include "properties/variants/recipe.h"

namespace attest::variants {

// glibc's fp64 exp and exp2 are off by less than 0.511 + 0.002 ulp (sysdeps/ieee754/dbl-64/e_exp.c, e_exp2.c): 1.03 u
// of fp64. Rounded to fp32 that is 1 u and 2^-28 u.
constexpr double rounded_error_fp32 = 1.0000001, libm_error_fp64 = 1.03;
// glibc's expf and exp2f: 0.502 ulp (sysdeps/ieee754/flt-32/e_expf.c, e_exp2f.c), and an ulp is up to 2 u.
constexpr double libm_error_fp32 = 1.005;
// logf: 0.818 ulp (sysdeps/ieee754/flt-32/e_logf.c). log: 0.519 ulp (sysdeps/ieee754/dbl-64/e_log.c).
constexpr double libm_log_error_fp32 = 1.637, libm_log_error_fp64 = 1.04;
// The cubic: 1471.16 on every fifth float of [-126, 1]; FlashAttention-4 states 8.8e-5 = 1476.4 u.
constexpr double cubic_error = 1472;

// 2^z by a cubic on [0, 1), coefficients of FlashAttention-4 (flash_attn/cute/utils.py, POLY_EX2[3]). Gradual
// underflow; exp2(0) is exactly 1.
inline float cubic_exp2(float z) {
  if (std::isnan(z)) return z;
  if (z < -160) return 0;
  if (z > 128) return std::numeric_limits<float>::infinity();
  const float whole = std::floor(z), f = z - whole;
  float y = 0.077119089663028717041015625f;
  y = std::fma(y, f, 0.227564394474029541015625f);
  y = std::fma(y, f, 0.695146143436431884765625f);
  y = std::fma(y, f, 1.0f);
  return std::ldexp(y, static_cast<int>(whole));
}

template <Exp how>
float exp_of(float z) {
  if constexpr (how == Exp::libm) return std::exp(z);
  return static_cast<float>(std::exp(static_cast<double>(z)));
}
template <Exp how>
double exp_of(double z) {
  return std::exp(z);
}

template <Exp how>
float exp2_of(float z) {
  if constexpr (how == Exp::libm) return std::exp2(z);
  if constexpr (how == Exp::cubic) return cubic_exp2(z);
  return static_cast<float>(std::exp2(static_cast<double>(z)));
}
template <Exp how>
double exp2_of(double z) {
  return std::exp2(z);
}

template <Exp how>
float log_of(float l) {
  if constexpr (how == Exp::libm) return std::log(l);
  return static_cast<float>(std::log(static_cast<double>(l)));
}
template <Exp how>
double log_of(double l) {
  return std::log(l);
}

inline float log2_of(float l) { return static_cast<float>(std::log2(static_cast<double>(l))); }
inline double log2_of(double l) { return std::log2(l); }

}  // namespace attest::variants
