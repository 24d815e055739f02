// The formats that the CPU kernels are instantiated for: what is stored, what is accumulated in, and what a weight p is
// rounded to before P.V.
#pragma once

#include <cstdint>

#include "impl/attention.h"
#include "impl/core/format.h"

namespace attn {

template <class T>
inline constexpr std::int32_t dtype_of = ATTN_DTYPE_NONE;
template <>
inline constexpr std::int32_t dtype_of<double> = ATTN_FP64;
template <>
inline constexpr std::int32_t dtype_of<float> = ATTN_FP32;
template <>
inline constexpr std::int32_t dtype_of<Half> = ATTN_FP16;
template <>
inline constexpr std::int32_t dtype_of<Bfloat16> = ATTN_BF16;

template <class StorageType, class AccumulatorType, class WeightType>
struct Format {
  using Storage = StorageType;
  using Acc = AccumulatorType;
  using Weight = WeightType;
  static constexpr bool rounds_weights = dtype_of<Weight> != dtype_of<Acc>;
};

using Fp64 = Format<double, double, double>;
using Fp32 = Format<float, float, float>;
using Fp16P16 = Format<Half, float, Half>;
using Fp16P32 = Format<Half, float, float>;
using Bf16P16 = Format<Bfloat16, float, Bfloat16>;
using Bf16P32 = Format<Bfloat16, float, float>;

}  // namespace attn
