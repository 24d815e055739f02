// Strided loads and stores in any format, for the readable kernels. Slow and plain on purpose.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "impl/attention.h"
#include "impl/core/format.h"

namespace attest::mutants {

inline int64_t offset(const attn_tensor& t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
}

inline float load_at(const attn_tensor& t, int64_t at) {
  switch (t.dtype) {
    case ATTN_FP64:
      return static_cast<float>(static_cast<const double*>(t.data)[at]);
    case ATTN_FP32:
      return static_cast<const float*>(t.data)[at];
    case ATTN_FP16:
      return attn::to_float(static_cast<const attn::Half*>(t.data)[at]);
    case ATTN_BF16:
      return attn::to_float(static_cast<const attn::Bfloat16*>(t.data)[at]);
    default:
      return std::nanf("");
  }
}

inline void store_at(const attn_tensor& t, int64_t at, float x) {
  switch (t.dtype) {
    case ATTN_FP64:
      static_cast<double*>(t.data)[at] = x;
      break;
    case ATTN_FP32:
      static_cast<float*>(t.data)[at] = x;
      break;
    case ATTN_FP16:
      static_cast<attn::Half*>(t.data)[at] = attn::to_half(x);
      break;
    case ATTN_BF16:
      static_cast<attn::Bfloat16*>(t.data)[at] = attn::to_bfloat16(x);
      break;
    default:
      break;
  }
}

// Rounds to the 16-bit format `dtype` and back; other formats keep the value.
inline float round_to(int32_t dtype, float x) {
  if (dtype == ATTN_FP16) return attn::to_float(attn::to_half(x));
  if (dtype == ATTN_BF16) return attn::to_float(attn::to_bfloat16(x));
  return x;
}

// The same towards zero.
inline float truncate_to(int32_t dtype, float x) {
  const float r = round_to(dtype, x);
  if (!(std::fabs(r) > std::fabs(x))) return r;
  if (dtype == ATTN_FP16) return attn::to_float(attn::Half{static_cast<uint16_t>(attn::to_half(x).bits - 1)});
  return attn::to_float(attn::Bfloat16{static_cast<uint16_t>(attn::to_bfloat16(x).bits - 1)});
}

// Truncates where that errs by no more than u = half an ulp of 1 does, relative to x; else rounds to nearest.
inline float round_down_within_u_to(int32_t dtype, float x) {
  const float low = truncate_to(dtype, x), u = dtype == ATTN_FP16 ? 0x1p-11f : 0x1p-8f;
  return std::fabs(x - low) <= u * std::fabs(x) ? low : round_to(dtype, x);
}

// a + b towards zero, for positive a and b: the sum in fp64 is exact enough to see on which side the nearest float is.
inline float add_chopped(float a, float b) {
  const double exact = static_cast<double>(a) + static_cast<double>(b);
  const float nearest = static_cast<float>(exact);
  return static_cast<double>(nearest) > exact ? std::nextafter(nearest, 0.0f) : nearest;
}

inline float exp_f(float z) { return static_cast<float>(std::exp(static_cast<double>(z))); }
// exp by 2^n 2^f with n in 16 bits, as vectors of such lanes hold it. The clamp at 2^-65536 forgets the sign's bit.
inline float exp_with_16_bit_exponent(float z) {
  if (!(z > -45426)) return exp_f(z);
  const double y = static_cast<double>(z) * 1.4426950408889634, n = std::rint(y);
  return static_cast<float>(std::ldexp(std::exp2(y - n), static_cast<int16_t>(static_cast<int64_t>(n))));
}
inline float log_f(float l) { return static_cast<float>(std::log(static_cast<double>(l))); }

}  // namespace attest::mutants
