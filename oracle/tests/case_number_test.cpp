// Numbers as text keep every bit; storage formats round to nearest even.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "oracle/format.h"
#include "oracle/number.h"
#include "oracle/philox.h"

namespace attest {
namespace {

TEST(Number, EveryBitPatternSurvivesTheRoundTrip) {
  RandomStream random(20, 1);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    std::uint64_t bits = random.bits(i);
    if (i % 4 == 1) bits &= 0x800fffffffffffffu;                 // subnormal
    if (i % 4 == 2) bits |= 0x7ff0000000000000u;                 // NaN, infinity
    if (i % 4 == 3) bits &= ~std::uint64_t{0} << (32 + i % 32);  // few digits
    const double x = std::bit_cast<double>(bits);
    const auto back = parse_number(number_text(x));
    ASSERT_TRUE(back.has_value()) << number_text(x);
    ASSERT_EQ(bits, std::bit_cast<std::uint64_t>(*back)) << number_text(x);
  }
}

TEST(Number, HasTheFormsOfTheFormat) {
  EXPECT_EQ("0x1.8p-3", number_text(0.1875));
  EXPECT_EQ("-0x0p+0", number_text(-0.0));
  EXPECT_EQ("-inf", number_text(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ("nan:7fc00001", number_text(*parse_number("nan:7fc00001")));
  EXPECT_EQ("nan:ff800001", number_text(*parse_number("nan:ff800001")));
  EXPECT_EQ("nan:7ff8000000000001", number_text(*parse_number("nan:7ff8000000000001")));
  EXPECT_EQ("0x1p-1074", number_text(std::numeric_limits<double>::denorm_min()));
  EXPECT_EQ(0.1, parse_number("0.1"));
  EXPECT_EQ(-1.25e3, parse_number("-1.25e3"));
  EXPECT_EQ(0.1875, parse_number("0X0.3P0"));
  EXPECT_EQ(0.0, parse_number("1e-999"));
  EXPECT_EQ(5.5e-320, parse_number("5.5e-320"));
}

TEST(Number, RefusesWhatIsNotExactlyANumber) {
  for (const char* bad : {"",
                          " ",
                          "1 ",
                          " 1",
                          "1,5",
                          "0x",
                          "0x.",
                          "0xg",
                          "0x1p",
                          "0x1p+",
                          "0x1p99999999",
                          "1e999",
                          "-1e999",
                          "inf ",
                          "infinity",
                          "Inf",
                          "nan:",
                          "nan:7f800000",
                          "nan:00000000",
                          "nan:7fc0000",
                          "nan:7fc000001",
                          "nan:7ff0000000000000",
                          "+-1",
                          "--1",
                          "1e",
                          "1e+",
                          ".",
                          "e5",
                          "0x1.00000000000001p0",
                          "0x1p-1075",
                          "0x1p1024",
                          "0x1.1.1p0",
                          "1.2.3",
                          "0b1",
                          "1f"})
    EXPECT_FALSE(parse_number(bad).has_value()) << "'" << bad << "'";
  EXPECT_FALSE(parse_number(std::string(1000, '1')).has_value());
}

TEST(Format, EncodesLikeTheHardwareInFp32) {
  RandomStream random(21, 1);
  for (std::uint64_t i = 0; i < 300000; ++i) {
    std::uint64_t bits = random.bits(i);
    if (i % 2) bits = (bits & 0x800fffffffffffffu) | (896 - 30 + random.bits(~i) % 320) << 52;  // around fp32's range
    const double x = std::bit_cast<double>(bits);
    if (std::isnan(x)) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(x)), encode(DType::fp32, x)) << number_text(x);
  }
}

// For every pair of neighbours of a 16-bit format: the midpoint goes to the even one, and anything beyond it over.
void check_16_bit(DType format, std::uint64_t infinity) {
  for (std::uint64_t bits = 0; bits < infinity; ++bits) {
    const double x = decode(format, bits);
    ASSERT_EQ(bits, encode(format, x));
    ASSERT_EQ(bits | 0x8000, encode(format, -x));
    const bool last = bits + 1 == infinity;
    const double next = last ? 2 * x - decode(format, bits - 1) : decode(format, bits + 1);
    const double middle = x + (next - x) / 2;
    const std::uint64_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(even, encode(format, middle));
    ASSERT_EQ(bits, encode(format, std::nextafter(middle, 0)));
    ASSERT_EQ(bits + 1, encode(format, std::nextafter(middle, 1e300)));
  }
}
TEST(Format, RoundsToNearestEvenInFp16) { check_16_bit(DType::fp16, 0x7c00); }
TEST(Format, RoundsToNearestEvenInBf16) { check_16_bit(DType::bf16, 0x7f80); }

TEST(Format, KnowsItsLandmarks) {
  EXPECT_EQ(65504, largest(DType::fp16));
  EXPECT_EQ(65504, largest(DType::any));
  EXPECT_EQ(0x1.fep127, largest(DType::bf16));
  EXPECT_EQ(std::numeric_limits<float>::max(), largest(DType::fp32));
  EXPECT_EQ(0x3c00u, encode(DType::fp16, 1));
  EXPECT_EQ(0x7c00u, encode(DType::fp16, 1e300));
  EXPECT_EQ(0u, encode(DType::fp16, 0x1p-25));  // a tie with 0, which is even
  EXPECT_EQ(1u, encode(DType::fp16, 0x1.0000000000001p-25));
  EXPECT_THROW(bytes_of(DType::any), std::logic_error);
}

TEST(Format, KeepsNaNsApart) {
  for (std::uint64_t bits : {0x7e01u, 0xfe00u, 0x7c01u})  // quiet, negative, signalling
    EXPECT_EQ(bits, encode(DType::fp16, decode(DType::fp16, bits)));
  const double low_payload = *parse_number("nan:7f800001");  // would be infinity if merely cut
  EXPECT_EQ(0x7fc0u, encode(DType::bf16, low_payload));
  EXPECT_EQ(0x7f800001u, encode(DType::fp32, low_payload));
}

}  // namespace
}  // namespace attest
