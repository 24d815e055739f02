// Roundoff constants of the element formats (IEEE 754; bfloat16: the upper half of binary32).
#include <cmath>
#include <limits>
#include <stdexcept>

#include "oracle/bound.h"

namespace attest {
namespace {

FormatFacts ieee(int precision, int min_exponent, int max_exponent) {
  FormatFacts f;
  f.precision = precision;
  f.min_exponent = min_exponent;
  f.u = std::ldexp(1.0, -precision);
  f.half_subnormal = std::ldexp(1.0, min_exponent - precision);
  // 2^-1075 does not exist in double: the next larger double keeps the floor of fp64 sound.
  if (f.half_subnormal == 0) f.half_subnormal = std::numeric_limits<double>::denorm_min();
  f.max = std::ldexp(2.0 - std::ldexp(1.0, 1 - precision), max_exponent);
  return f;
}

}  // namespace

FormatFacts facts(DType format) {
  // Made once: bounds ask for them at every row.
  static const FormatFacts fp64 = ieee(53, -1022, 1023), fp32 = ieee(24, -126, 127), fp16 = ieee(11, -14, 15),
                           bf16 = ieee(8, -126, 127);
  switch (format) {
    case DType::fp64:
      return fp64;
    case DType::fp32:
      return fp32;
    case DType::fp16:
      return fp16;
    case DType::bf16:
      return bf16;
    case DType::any:
      break;
  }
  throw std::invalid_argument("facts: the format `any` has no roundoff; resolve it by the kernel's Contract first");
}

DType dtype_of(std::int32_t attn_dtype) {
  switch (attn_dtype) {
    case ATTN_FP64:
      return DType::fp64;
    case ATTN_FP32:
      return DType::fp32;
    case ATTN_FP16:
      return DType::fp16;
    case ATTN_BF16:
      return DType::bf16;
    default:
      break;
  }
  throw std::invalid_argument("dtype_of: " + std::to_string(attn_dtype) +
                              " is not a floating-point ATTN_* dtype that version 1 knows");
}

std::int32_t attn_dtype_of(DType format) {
  switch (format) {
    case DType::fp64:
      return ATTN_FP64;
    case DType::fp32:
      return ATTN_FP32;
    case DType::fp16:
      return ATTN_FP16;
    case DType::bf16:
      return ATTN_BF16;
    case DType::any:
      break;
  }
  throw std::invalid_argument("attn_dtype_of: the format `any` has no ATTN_* code");
}

}  // namespace attest
