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

inline float exp_f(float z) { return static_cast<float>(std::exp(static_cast<double>(z))); }
inline float log_f(float l) { return static_cast<float>(std::log(static_cast<double>(l))); }

}  // namespace attest::mutants
