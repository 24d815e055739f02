// Random operands of matrix instructions, by kind: what attention sees, and what tells models of accumulation apart.
// A value is a function of (seed, place) alone, so that a comparison is repeated by its seed.
#pragma once

#include <array>
#include <cstdint>

#include "impl/cuda/calibrate/accumulation.h"

namespace attn::calibrate {

// Exponents, both ends included; ends beyond a format's are its own: `subnormal` the subnormals, `largest` the top.
struct Exponents {
  int lowest = 0, highest = 0;
};
inline constexpr int subnormal = -1000, largest = 1000;

struct Inputs {
  const char* name = "";
  Exponents a, b, c;
  int zeros = 0;                                // of 256 values
  bool positive_a = false, positive_b = false;  // with positive_a, c too
  bool cancelling = false;                      // every second product is about the negative of the one before
  bool special = false;                         // one value in 64 an infinity or a NaN
};

// Exponents of products run to 30 in fp16, far beyond fp32 in bf16: the kinds that are about the ends differ.
inline constexpr std::array<Inputs, 12> narrow_inputs = {{
    {"unit", {-2, 1}, {-2, 1}, {-3, 4}},
    {"same sign", {0, 0}, {0, 0}, {0, 6}, 0, true, true},
    {"cancelling pairs", {-3, 3}, {-3, 3}, {-24, 4}, 0, false, false, true},
    {"large c", {-2, 1}, {-2, 1}, {0, 30}},
    {"P.V", {-14, 0}, {-3, 2}, {-4, 8}, 0, true},
    {"full range", {subnormal, largest}, {subnormal, largest}, {-45, 45}},
    {"subnormal a", {subnormal, subnormal}, {subnormal, 3}, {-60, -6}},
    {"overflow", {6, largest}, {6, largest}, {100, 127}},
    {"tiny", {subnormal, -13}, {subnormal, -13}, {-75, -24}, 60},
    {"zeros", {subnormal, largest}, {subnormal, largest}, {-45, 30}, 100},
    {"subnormal c", {subnormal, largest}, {subnormal, largest}, {subnormal, -120}, 236},
    {"inf and NaN", {-2, 1}, {-2, 1}, {-3, 4}, 8, false, false, false, true},
}};
inline constexpr std::array<Inputs, 14> wide_inputs = {{
    {"unit", {-2, 1}, {-2, 1}, {-3, 4}},
    {"same sign", {0, 0}, {0, 0}, {0, 6}, 0, true, true},
    {"cancelling pairs", {-3, 3}, {-3, 3}, {-24, 4}, 0, false, false, true},
    {"large c", {-2, 1}, {-2, 1}, {0, 30}},
    {"P.V", {-14, 0}, {-3, 2}, {-4, 8}, 0, true},
    {"wide", {-30, 30}, {-30, 30}, {-60, 60}},
    {"full range", {subnormal, largest}, {subnormal, largest}, {subnormal, 127}},
    {"subnormal a", {subnormal, subnormal}, {-8, 8}, {subnormal, -112}},
    {"overflow", {60, 66}, {58, 64}, {120, 127}},
    {"overflow, cancelling", {60, 66}, {58, 64}, {100, 124}, 0, false, false, true},
    {"tiny", {-80, -60}, {-80, -50}, {subnormal, -112}, 60},
    {"zeros", {-30, 30}, {-30, 30}, {-60, 60}, 100},
    {"subnormal c", {-30, 30}, {-30, 30}, {subnormal, -120}, 236},
    {"inf and NaN", {-2, 1}, {-2, 1}, {-3, 4}, 8, false, false, false, true},
}};

// Spreads a counter over 64 bits: the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
ATTN_HOST_DEVICE constexpr std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The bits of a float with `fraction` fraction bits, exponents from `smallest` on and `top` as the exponent field of
// infinities, without a sign.
ATTN_HOST_DEVICE constexpr std::uint32_t draw(const Exponents& range, const Inputs& inputs, std::uint64_t random,
                                              int fraction, int smallest, int top) {
  if (static_cast<int>(random & 255) < inputs.zeros) return 0;
  const std::uint32_t digits = static_cast<std::uint32_t>(random >> 24) & ((1u << fraction) - 1);
  if (inputs.special && (random >> 48 & 63) == 0)
    return static_cast<std::uint32_t>(top) << fraction | (random >> 60 & 1 ? 1u << (fraction - 1) : 0);
  const auto clamped = [&](int e) {
    const int field = e - smallest + 1;
    return field < 0 ? 0 : field < top ? field : top - 1;
  };
  const int low = clamped(range.lowest), high = clamped(range.highest);
  const int field = low + static_cast<int>((random >> 8 & 0xffff) % static_cast<std::uint64_t>(high - low + 1));
  return static_cast<std::uint32_t>(field) << fraction | digits;
}

// Element k of row `key` of a (or of column `key` of b).
template <class T>
ATTN_HOST_DEVICE constexpr T operand(const Inputs& inputs, bool is_b, std::uint64_t key, int k) {
  using P = Places<T>;
  const bool repeats = inputs.cancelling && k % 2 != 0;
  const std::uint64_t random = spread(key + static_cast<std::uint64_t>(repeats ? k - 1 : k));
  const bool is_positive = inputs.positive_a && (!is_b || inputs.positive_b);
  std::uint32_t bits = draw(is_b ? inputs.b : inputs.a, inputs, random, P::fraction, P::smallest, P::top);
  if (!is_positive && (random >> 62 & 1) != 0) bits |= 0x8000u;
  if (repeats) {
    if (is_b) bits ^= 0x8000u;
    if (spread(random) % 4 == 0) bits ^= 1u;
  }
  return {static_cast<std::uint16_t>(bits)};
}

// The accumulator at a place.
ATTN_HOST_DEVICE constexpr std::uint32_t start(const Inputs& inputs, std::uint64_t key) {
  const std::uint64_t random = spread(key);
  const std::uint32_t sign = !inputs.positive_a && (random >> 62 & 1) != 0 ? 0x80000000u : 0u;
  return sign | draw(inputs.c, inputs, random, 23, -126, 255);
}

}  // namespace attn::calibrate
