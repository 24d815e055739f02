// How a matrix instruction accumulates, in integers: the model of Khattak and Mikaitis (arXiv 2512.07004), plus what an
// H200 showed beyond it. Plain C++: device code compares instructions with it, and a test compares it with rationals.
//
// One step takes a number of products and the accumulator c. E is the largest exponent among the nonzero terms, where a
// product has the sum of its factors' exponents (in [1, 4) times 2^E: not normalised) and a subnormal the smallest of
// its format. Every term is cut to a multiple of 2^(E - fraction_bits), the sum of what is left is exact, and the
// result is cut to 24 bits; below 2^-126 to a multiple of 2^-149. A zero takes no part in E and a result of 0 is +0.
// A sum beyond the largest float is an infinity, and every NaN is 7fffffff.
#pragma once

#include <cstdint>

#include "impl/core/format.h"

namespace attn::calibrate {

enum class Cut { toward_zero, down, to_nearest };

// The constants of the model, and what an instruction might do otherwise: a comparison that every model passes would
// show nothing.
struct Accumulation {
  int terms = 16;          // L, products of one step
  int fraction_bits = 25;  // F
  Cut align = Cut::toward_zero, result = Cut::toward_zero;
  int lowest = -133;  // E is never below: sums of tiny products from c = 0 show it (bf16 on sm_90)
};

// significand 2^(exponent - 23). Not finite: this exponent, and a significand of +-1 for an infinity, 0 for a NaN. So
// a product of significands is 0 just where infinity times zero, or a NaN, makes it NaN.
struct Term {
  std::int32_t significand = 0;
  int exponent = 0;
};
inline constexpr int not_finite = 1 << 20;
inline constexpr std::uint32_t nan_bits = 0x7fffffffu, infinity_bits = 0x7f800000u;

// Factors of a product: significands keep their own number of fraction bits, `places`.
template <class T>
struct Places;
template <>
struct Places<Half> {
  static constexpr int fraction = 10, top = 31, smallest = -14;
};
template <>
struct Places<Bfloat16> {
  static constexpr int fraction = 7, top = 255, smallest = -126;
};

template <class T>
ATTN_HOST_DEVICE constexpr Term factor(T x) {
  using P = Places<T>;
  const int field = x.bits >> P::fraction & P::top, fraction = x.bits & ((1 << P::fraction) - 1);
  const int sign = x.bits >> 15 ? -1 : 1;
  if (field == P::top) return {fraction != 0 ? 0 : sign, not_finite};
  const int hidden = field > 0 ? 1 << P::fraction : 0;
  return {sign * (hidden + fraction), P::smallest + (field > 0 ? field - 1 : 0)};
}

template <class T>
ATTN_HOST_DEVICE constexpr Term product(T a, T b) {
  const Term x = factor(a), y = factor(b);
  const std::int32_t significand = x.significand * y.significand;
  if (x.exponent == not_finite || y.exponent == not_finite) return {significand, not_finite};
  return {significand * (1 << (23 - 2 * Places<T>::fraction)), x.exponent + y.exponent};
}

ATTN_HOST_DEVICE constexpr Term accumulator(std::uint32_t bits) {
  const int field = static_cast<int>(bits >> 23 & 255), fraction = static_cast<int>(bits & 0x7fffffu);
  const int sign = bits >> 31 ? -1 : 1;
  if (field == 255) return {fraction != 0 ? 0 : sign, not_finite};
  return {sign * (fraction + (field > 0 ? 1 << 23 : 0)), field > 0 ? field - 127 : -126};
}

// x 2^shift as an integer.
ATTN_HOST_DEVICE constexpr std::int64_t shifted(std::int64_t x, int shift, Cut cut) {
  if (shift >= 0) return x * (std::int64_t{1} << (shift < 32 ? shift : 32));
  const int right = -shift < 62 ? -shift : 62;
  const std::int64_t unit = std::int64_t{1} << right, floor = x >> right, rest = x - floor * unit;
  if (cut == Cut::down || rest == 0) return floor;
  if (cut == Cut::toward_zero) return x < 0 ? floor + 1 : floor;
  return floor + (rest > unit / 2 || (rest == unit / 2 && (floor & 1) != 0) ? 1 : 0);
}

// sum 2^unit in fp32. |sum| < 2^53.
ATTN_HOST_DEVICE constexpr std::uint32_t encode(std::int64_t sum, int unit, Cut cut) {
  if (sum == 0) return 0;
  const double magnitude = static_cast<double>(sum < 0 ? -sum : sum);  // exact: its exponent is the leading bit's place
  const int leading = static_cast<int>(bits_as<std::uint64_t>(magnitude) >> 52) - 1023;
  const int exponent = unit + leading > -126 ? unit + leading : -126;
  const std::int64_t digits = shifted(sum, unit - (exponent - 23), cut);
  if (digits == 0) return 0;
  // The hidden bit of a normal number, and a carry to 2^24, count up the exponent.
  const std::int64_t code = (std::int64_t{exponent + 126} << 23) + (digits < 0 ? -digits : digits);
  return (sum < 0 ? 0x80000000u : 0u) | (code < infinity_bits ? static_cast<std::uint32_t>(code) : infinity_bits);
}

// What is not finite among the terms of a step decides its result.
struct Classes {
  bool nan = false, above = false, below = false;
  ATTN_HOST_DEVICE constexpr void note(const Term& t) {
    nan |= t.significand == 0;
    above |= t.significand > 0;
    below |= t.significand < 0;
  }
  ATTN_HOST_DEVICE constexpr bool any() const { return nan || above || below; }
  ATTN_HOST_DEVICE constexpr std::uint32_t bits() const {
    return nan || (above && below) ? nan_bits : infinity_bits | (below ? 0x80000000u : 0u);
  }
};

// One step: the products first .. last - 1, where products(k) is a Term, added to c.
template <class Products>
ATTN_HOST_DEVICE constexpr std::uint32_t step(const Products& products, int first, int last, std::uint32_t c,
                                              const Accumulation& model) {
  Classes classes;
  int top = model.lowest;
  const auto look = [&](const Term& t) {
    if (t.exponent == not_finite)
      classes.note(t);
    else if (t.significand != 0 && t.exponent > top)
      top = t.exponent;
  };
  const Term start = accumulator(c);
  look(start);
  for (int k = first; k < last; ++k) look(products(k));
  if (classes.any()) return classes.bits();
  const auto cut = [&](const Term& t) {
    return shifted(t.significand, model.fraction_bits - 23 + t.exponent - top, model.align);
  };
  std::int64_t sum = cut(start);
  for (int k = first; k < last; ++k) sum += cut(products(k));
  return encode(sum, top - model.fraction_bits, model.result);
}

// All `count` products in order, `terms` at a time: one instruction, or several in a row.
template <class Products>
ATTN_HOST_DEVICE constexpr std::uint32_t accumulate(const Products& products, int count, std::uint32_t c,
                                                    const Accumulation& model) {
  for (int first = 0; first < count; first += model.terms)
    c = step(products, first, first + model.terms < count ? first + model.terms : count, c, model);
  return c;
}

}  // namespace attn::calibrate
