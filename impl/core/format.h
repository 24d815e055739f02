// Storage formats and their conversions. Every conversion rounds to nearest even, keeps subnormals and infinities, and
// turns a signalling NaN into the quiet one of the same sign and payload. Branch-free, so that loops over them
// vectorise.
#pragma once

#include <cstdint>

#include "impl/core/host_device.h"

namespace attn {

// 16-bit patterns. IEEE 754 binary16: 1 + 5 + 10 bits. Bfloat16: the upper half of binary32, 1 + 8 + 7 bits.
struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

ATTN_HOST_DEVICE constexpr float to_float(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffu;
  // A subnormal is an integer count of 2^-24: exact without relying on how the machine treats fp32 subnormals.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);  // exponent bias 15 -> 127
  const std::uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x00400000u : 0u);
  std::uint32_t bits = magnitude < 0x0400u ? bits_as<std::uint32_t>(subnormal) : normal;
  bits = magnitude >= 0x7c00u ? special : bits;
  return bits_as<float>(bits | sign);
}

ATTN_HOST_DEVICE constexpr Half to_half(float x) {
  const std::uint32_t all = bits_as<std::uint32_t>(x);
  const std::uint32_t sign = (all >> 16) & 0x8000u;
  const std::uint32_t magnitude = all & 0x7fffffffu;
  // Below 2^-14: adding 0.5, whose ulp is the smallest half subnormal, makes the adder round for us.
  const std::uint32_t subnormal = bits_as<std::uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  // Add just under half a unit, one more if the kept part is odd: ties go to even, a carry moves into the exponent.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x01ffu);
  std::uint32_t bits = magnitude < 0x38800000u ? subnormal : normal;
  bits = magnitude >= 0x47800000u ? 0x7c00u : bits;  // 2^16 and above; 65520..2^16 carry into infinity by themselves
  bits = magnitude > 0x7f800000u ? nan : bits;
  return Half{static_cast<std::uint16_t>(bits | sign)};
}

ATTN_HOST_DEVICE constexpr float to_float(Bfloat16 b) {
  const std::uint32_t bits = static_cast<std::uint32_t>(b.bits) << 16;
  return bits_as<float>(bits | ((bits & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u));
}

ATTN_HOST_DEVICE constexpr Bfloat16 to_bfloat16(float x) {
  const std::uint32_t all = bits_as<std::uint32_t>(x);
  const std::uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (all >> 16) | 0x0040u;
  return Bfloat16{static_cast<std::uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// convert<To>(from): between a storage format and an accumulator format, one rounding at most.
template <class To>
struct Converter;
template <>
struct Converter<float> {
  static ATTN_HOST_DEVICE constexpr float from(float x) { return x; }
  static ATTN_HOST_DEVICE constexpr float from(Half x) { return to_float(x); }
  static ATTN_HOST_DEVICE constexpr float from(Bfloat16 x) { return to_float(x); }
};
template <>
struct Converter<double> {
  static ATTN_HOST_DEVICE constexpr double from(double x) { return x; }
};
template <>
struct Converter<Half> {
  static ATTN_HOST_DEVICE constexpr Half from(float x) { return to_half(x); }
};
template <>
struct Converter<Bfloat16> {
  static ATTN_HOST_DEVICE constexpr Bfloat16 from(float x) { return to_bfloat16(x); }
};

template <class To, class From>
ATTN_HOST_DEVICE constexpr To convert(From x) {
  return Converter<To>::from(x);
}

}  // namespace attn
