// exp in fp32 and fp64: branch-free, so that loops over it vectorise, and the same bits on every IEEE machine.
//
// Cody-Waite reduction x = n ln 2 + r, |r| <= 0.3466, then exp(r) = 1 + (r + r^2 q(r)) and a product with 2^n in two
// steps, so that results below the normal range are rounded once (gradual underflow) and not flushed.
// exp(+-0) == 1, exp(-inf) == 0 and exp(+inf) == inf exactly; NaN gives NaN.
//
// Error of normal results, in units of the roundoff u = 2^-24 (fp32) or 2^-53 (fp64). n ln2_hi is exact (trailing zero
// bits), and so is x - n ln2_hi: both are multiples of 2^-(p+1), the difference below 1/2. The worst place is r =
// -0.3466, exp(r) = 0.707, where the half ulps are
//   u/4 for r, passed on with the factor exp(r): 0.25 u of the result;
//   u/4 for r + r^2 q = -0.293:                  0.36 u;
//   u/2 for the last sum:                        0.71 u;
//   u/16 for r^2, u/4 for q, and Horner's rest:  0.09 u;
//   fp64, Taylor remainder r^14/14!:             0.06 u;  1.47 u in all. fp32's minimax polynomial: swept instead.
// Elsewhere less: 1.25 u and below. Measured: fp32, every negative float: 1.409173 u (at x = -5.878, exhaustive);
// fp64, 7.5 million arguments: 1.386 u. impl/tests/full_test.cpp measures again.
// Results below the normal range are off by at most half of the smallest subnormal more.
#pragma once

#include <cstdint>

#include "impl/core/host_device.h"

namespace attn {

namespace detail {

// y 2^n for y in [0.7, 1.5], -1100 < n < 1100 (fp64) or -160 < n < 160 (fp32). The first product is exact.
ATTN_HOST_DEVICE constexpr double times_power(double y, std::uint64_t n) {
  const std::uint64_t half = ((n + 2048u) >> 1) - 1024u;  // floor(n / 2) by a logical shift: AVX2 has no other
  const double first = bits_as<double>((half + 1023u) << 52);
  const double second = bits_as<double>((n - half + 1023u) << 52);
  return y * first * second;
}
ATTN_HOST_DEVICE constexpr float times_power(float y, std::uint32_t n) {
  const std::uint32_t half = ((n + 512u) >> 1) - 256u;
  const float first = bits_as<float>((half + 127u) << 23);
  const float second = bits_as<float>((n - half + 127u) << 23);
  return y * first * second;
}

}  // namespace detail

ATTN_HOST_DEVICE inline float exp_of(float x) {
  constexpr float lowest = -104.0f;  // exp(-104) < 2^-150, which rounds to 0
  constexpr float highest = 89.0f;   // overflows
  // Written so that NaN falls through both.
  float t = x < lowest ? lowest : x;
  t = t > highest ? highest : t;
  constexpr float magic = 0x1.8p23f;  // adding it rounds to an integer, left in the low bits
  const float shifted = fused(t, 0x1.715476p0f, magic);
  const float n = shifted - magic;
  float r = fused(n, -0x1.62e4p-1f, t);  // ln 2 rounded to 15 bits
  r = fused(n, -0x1.7f7d1cp-20f, r);     // the rest of ln 2
  // Minimax on |r| <= ln(2)/2 (Cephes, expf).
  float q = 1.9875691500e-4f;
  q = fused(q, r, 1.3981999507e-3f);
  q = fused(q, r, 8.3334519073e-3f);
  q = fused(q, r, 4.1665795894e-2f);
  q = fused(q, r, 1.6666665459e-1f);
  q = fused(q, r, 5.0000001201e-1f);
  const float y = 1.0f + fused(r * r, q, r);
  return detail::times_power(y, bits_as<std::uint32_t>(shifted) - bits_as<std::uint32_t>(magic));
}

ATTN_HOST_DEVICE inline double exp_of(double x) {
  constexpr double lowest = -746.0;  // exp(-746) < 2^-1075, which rounds to 0
  constexpr double highest = 710.0;  // overflows
  double t = x < lowest ? lowest : x;
  t = t > highest ? highest : t;
  constexpr double magic = 0x1.8p52;
  const double shifted = fused(t, 0x1.71547652b82fep0, magic);
  const double n = shifted - magic;
  double r = fused(n, -0x1.62e42feep-1, t);  // ln 2 rounded to 32 bits (fdlibm's ln2HI)
  r = fused(n, -0x1.a39ef35793c76p-33, r);   // the rest (fdlibm's ln2LO)
  // Taylor: 1/13!, ..., 1/2!.
  double q = 1.0 / 6227020800.0;
  q = fused(q, r, 1.0 / 479001600.0);
  q = fused(q, r, 1.0 / 39916800.0);
  q = fused(q, r, 1.0 / 3628800.0);
  q = fused(q, r, 1.0 / 362880.0);
  q = fused(q, r, 1.0 / 40320.0);
  q = fused(q, r, 1.0 / 5040.0);
  q = fused(q, r, 1.0 / 720.0);
  q = fused(q, r, 1.0 / 120.0);
  q = fused(q, r, 1.0 / 24.0);
  q = fused(q, r, 1.0 / 6.0);
  q = fused(q, r, 0.5);
  const double y = 1.0 + fused(r * r, q, r);
  return detail::times_power(y, bits_as<std::uint64_t>(shifted) - bits_as<std::uint64_t>(magic));
}

}  // namespace attn
