// Double-double arithmetic: an unevaluated sum hi + lo of two doubles, |lo| <= ulp(hi) / 2. u = 2^-53.
//
// Error-free transformations (Dekker, Knuth) and the algorithms of Joldes, Muller, Popescu, "Tight and rigorous error
// bounds for basic building blocks of double-word arithmetic" (2017), whose relative bounds are quoted beside each.
// Branch-free templates over double and Lanes. Requires round to nearest, no -ffast-math, no contraction.
#pragma once

#include <cmath>

#include "oracle/lanes.h"

namespace attest {

template <class T>
struct BasicDoubleDouble {
  T hi{}, lo{};
};
using DoubleDouble = BasicDoubleDouble<double>;

// a + b = hi + lo exactly (barring overflow).
template <class T>
inline BasicDoubleDouble<T> two_sum(T a, T b) {
  const T s = a + b, z = s - a;
  return {s, (a - (s - z)) + (b - z)};
}

// The same for |a| >= |b| or a == 0.
template <class T>
inline BasicDoubleDouble<T> quick_two_sum(T a, T b) {
  const T s = a + b;
  return {s, b - (s - a)};
}

// a * b = hi + lo, exactly unless the low part is subnormal: then within 2^-1075.
template <class T>
inline BasicDoubleDouble<T> two_prod(T a, T b) {
  const T p = a * b;
  return {p, fused(a, b, -p)};
}

// Relative error <= 3u^2 / (1 - 4u), cancellation included (AccurateDWPlusDW).
template <class T>
inline BasicDoubleDouble<T> add(BasicDoubleDouble<T> a, BasicDoubleDouble<T> b) {
  const auto s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
  const auto v = quick_two_sum(s.hi, s.lo + t.hi);
  return quick_two_sum(v.hi, t.lo + v.lo);
}

// Relative error <= 2u^2 (DWPlusFP).
template <class T>
inline BasicDoubleDouble<T> add(BasicDoubleDouble<T> a, T b) {
  const auto s = two_sum(a.hi, b);
  return quick_two_sum(s.hi, a.lo + s.lo);
}

// Relative error <= 5u^2 (DWTimesDW2).
template <class T>
inline BasicDoubleDouble<T> mul(BasicDoubleDouble<T> a, BasicDoubleDouble<T> b) {
  const auto p = two_prod(a.hi, b.hi);
  return quick_two_sum(p.hi, p.lo + fused(a.lo, b.hi, a.hi * b.lo));
}

// Relative error <= 2u^2 (DWTimesFP3).
template <class T>
inline BasicDoubleDouble<T> mul(BasicDoubleDouble<T> a, T b) {
  const auto p = two_prod(a.hi, b);
  return quick_two_sum(p.hi, fused(a.lo, b, p.lo));
}

// Relative error <= 15u^2 + 56u^3 (DWDivDW2).
template <class T>
inline BasicDoubleDouble<T> div(BasicDoubleDouble<T> a, BasicDoubleDouble<T> b) {
  const T t = a.hi / b.hi;
  const auto r = mul(b, t);
  const T delta = (a.hi - r.hi) + (a.lo - r.lo);
  return quick_two_sum(t, delta / b.hi);
}

template <class T>
inline BasicDoubleDouble<T> negate(BasicDoubleDouble<T> a) {
  return {-a.hi, -a.lo};
}

// Relative error of exp_dd and absolute error that a subnormal result adds.
inline constexpr double exp_dd_error = 0x1p-100, exp_dd_floor = 0x1p-1074;

// e^x for x <= 709; below -746 the result is that of -746, which is 0.
//
// x = k ln2 + 64 r, |r| < 0.00542; p = e^r - 1 by Taylor (degree 11, the terms from r^7 on in double: they are below
// 2^-57 of p), then six times p <- 2p + p^2, which turns p into e^(64 r) - 1. Errors, relative to p: about 20u^2 from
// the series, a growth of at most 1.25 and 8u^2 a step from the doublings, so 75u^2 in all; |p| <= 0.42 (1 + p) turns
// that into 31u^2 of the result; the argument (k ln2 in three parts of 42 + 53 + 53 bits) adds 4u^2, the final sum
// 2u^2. 37u^2 < 64u^2 = 2^-100, as declared above.
template <class T>
inline BasicDoubleDouble<T> exp_dd(BasicDoubleDouble<T> x) {
  constexpr double log2e = 0x1.71547652b82fep+0, round = 0x1.8p52;
  constexpr double ln2_a = 0x1.62e42fefa38p-1, ln2_b = 0x1.ef35793c7673p-45, ln2_c = 0x1.f97b57a079a19p-103;
  const auto constant = [](double hi, double lo) { return BasicDoubleDouble<T>{broadcast<T>(hi), broadcast<T>(lo)}; };
  const auto underflows = x.hi < -746;
  x.hi = underflows ? broadcast<T>(-746) : x.hi;
  x.lo = underflows ? broadcast<T>(0) : x.lo;

  const T k = (x.hi * log2e + round) - round;
  auto k_ln2 = two_prod(k, broadcast<T>(ln2_b));
  k_ln2.lo = fused(k, broadcast<T>(ln2_c), k_ln2.lo);
  auto r = add(add(x, -k * ln2_a), negate(k_ln2));  // k * ln2_a is exact: 11 + 42 bits
  r = {r.hi * 0x1p-6, r.lo * 0x1p-6};

  T tail = broadcast<T>(0x1.ae64567f544e4p-26);  // 1/11! ... 1/7!
  tail = fused(tail, r.hi, broadcast<T>(0x1.27e4fb7789f5cp-22));
  tail = fused(tail, r.hi, broadcast<T>(0x1.71de3a556c734p-19));
  tail = fused(tail, r.hi, broadcast<T>(0x1.a01a01a01a01ap-16));
  tail = fused(tail, r.hi, broadcast<T>(0x1.a01a01a01a01ap-13));
  auto p = add(constant(0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65), tail * r.hi);  // 1/6!
  p = add(mul(p, r), constant(0x1.1111111111111p-7, 0x1.1111111111111p-63));           // 1/5!
  p = add(mul(p, r), constant(0x1.5555555555555p-5, 0x1.5555555555555p-59));           // 1/4!
  p = add(mul(p, r), constant(0x1.5555555555555p-3, 0x1.5555555555555p-57));           // 1/3!
  p = add(mul(p, r), broadcast<T>(0.5));
  p = add(mul(mul(p, r), r), r);
  for (int i = 0; i < 6; ++i) p = add(BasicDoubleDouble<T>{2 * p.hi, 2 * p.lo}, mul(p, p));
  p = add(p, broadcast<T>(1));

  // In two factors, so that 2^k may be subnormal: hi and lo are then each off by 2^-1075 at most.
  const T half = (0.5 * k + round) - round;
  const T a = power_of_two(half), b = power_of_two(k - half);
  return {p.hi * a * b, p.lo * a * b};
}

// Absolute error of log_dd, beside 4u^2 |log x|.
inline constexpr double log_dd_error = 0x1p-99;

// log x for 2^-1000 < x < 2^1000: with y near log x and t = x e^-y - 1, |t| < 2^-42, log x = y + t - t^2/2 + t^3/3.
// e^-y costs exp_dd_error of a product near 1; the term t^4 and the rounding of the squares stay below 2^-140.
inline DoubleDouble log_dd(DoubleDouble x) {
  const double y = std::log(x.hi);
  const DoubleDouble t = add(mul(x, exp_dd(DoubleDouble{-y, 0})), -1.0);
  const double correction = t.hi * t.hi * (t.hi / 3 - 0.5);
  return add(add(t, correction), y);
}

}  // namespace attest
