// Storage formats against double arithmetic, over every 16-bit pattern and around every rounding edge.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "impl/core/format.h"

namespace attn {
namespace {

// Value of a 16-bit pattern from the definition: exponent and fraction widths, fp64 arithmetic.
double decode(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(static_cast<double>(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
  double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  if (exponent == (1 << exponent_bits) - 1) value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000u ? -value : value;
}

template <class T, int ExponentBits, int FractionBits>
struct Spec {
  static T encode(float x) {
    if constexpr (FractionBits == 10) return to_half(x);
    if constexpr (FractionBits == 7) return to_bfloat16(x);
  }
  static double value(std::uint32_t bits) { return decode(bits, ExponentBits, FractionBits); }

  static void round_trips() {
    for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
      const float x = to_float(T{static_cast<std::uint16_t>(bits)});
      const double want = value(bits);
      const std::uint32_t back = encode(x).bits;
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(x)) << std::hex << bits;
        ASSERT_EQ(back, bits | (1u << (FractionBits - 1))) << std::hex << bits;  // quiet, same sign and payload
      } else {
        ASSERT_EQ(static_cast<double>(x), want) << std::hex << bits;
        ASSERT_EQ(std::signbit(x), (bits >> 15) != 0) << std::hex << bits;
        ASSERT_EQ(back, bits) << std::hex << bits;
      }
    }
  }

  // Around every finite value and every midpoint to the next: the nearer must come out, the even one of a tie. Beyond
  // the largest finite value stands the next power of two, which is infinity.
  static void rounds_to_nearest_even() {
    const std::uint32_t infinity = ((1u << ExponentBits) - 1) << FractionBits;
    for (std::uint32_t low = 0; low < infinity; ++low) {
      const float a = static_cast<float>(value(low));
      // fp32 neighbours of the value, of the midpoint and of the next value.
      const double next = low + 1 == infinity ? 2.0 * value(low) - value(low - 1) : value(low + 1);
      const float middle = static_cast<float>((static_cast<double>(a) + next) / 2);
      for (const float x : {a, std::nextafterf(a, INFINITY), std::nextafterf(middle, 0.0f), middle,
                            std::nextafterf(middle, INFINITY)}) {
        const std::uint32_t above = low + 1;
        const double from_a = static_cast<double>(x) - a, from_b = next - static_cast<double>(x);
        const std::uint32_t want = from_a < from_b || (from_a == from_b && low % 2 == 0) ? low : above;
        ASSERT_EQ(encode(x).bits, want) << std::hexfloat << x;
        ASSERT_EQ(encode(-x).bits, want | 0x8000u) << std::hexfloat << x;
      }
    }
    ASSERT_EQ(encode(INFINITY).bits, infinity);
    ASSERT_EQ(encode(std::numeric_limits<float>::max()).bits, infinity);
    ASSERT_EQ(encode(std::numeric_limits<float>::denorm_min()).bits, 0u);
  }
};

using HalfSpec = Spec<Half, 5, 10>;
using BfloatSpec = Spec<Bfloat16, 8, 7>;

TEST(Format, HalfRoundTrips) { HalfSpec::round_trips(); }
TEST(Format, BfloatRoundTrips) { BfloatSpec::round_trips(); }
TEST(Format, HalfRoundsToNearestEven) { HalfSpec::rounds_to_nearest_even(); }
TEST(Format, BfloatRoundsToNearestEven) { BfloatSpec::rounds_to_nearest_even(); }

TEST(Format, NaNStaysNaN) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(to_float(to_half(nan)))) << std::hex << bits;
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(nan)))) << std::hex << bits;
    EXPECT_EQ(to_half(nan).bits >> 15, bits >> 31);
    EXPECT_EQ(to_bfloat16(nan).bits >> 15, bits >> 31);
  }
}

}  // namespace
}  // namespace attn
