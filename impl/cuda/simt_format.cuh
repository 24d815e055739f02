// Formats of values as the scalar kernels see them, and P.V by fused multiply-adds on register fragments.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "impl/attention.h"
#include "impl/core/format.h"

namespace attn {

// widen and narrow to and from fp32, by the chip's conversions (nearest even, subnormals kept); round: what P becomes.
template <class T>
struct Storage;
template <>
struct Storage<float> {
  static constexpr std::int32_t dtype = ATTN_FP32;
  static __device__ float widen(float x) { return x; }
  static __device__ float narrow(float x) { return x; }
  static __device__ float round(float x) { return x; }
};
template <>
struct Storage<Half> {
  static constexpr std::int32_t dtype = ATTN_FP16;
  static __device__ float widen(Half x) { return __half2float(__ushort_as_half(x.bits)); }
  static __device__ Half narrow(float x) { return Half{__half_as_ushort(__float2half_rn(x))}; }
  static __device__ float round(float x) { return widen(narrow(x)); }
};
template <>
struct Storage<Bfloat16> {
  static constexpr std::int32_t dtype = ATTN_BF16;
  static __device__ float widen(Bfloat16 x) { return __bfloat162float(__ushort_as_bfloat16(x.bits)); }
  static __device__ Bfloat16 narrow(float x) { return Bfloat16{__bfloat16_as_ushort(__float2bfloat16_rn(x))}; }
  static __device__ float round(float x) { return widen(narrow(x)); }
};

// P at a key that the row does not see. No weight is negative, not even one that underflows; the value of such a key
// must not be touched, since 0 * NaN is NaN.
constexpr float hidden_weight = -0.0f;

__device__ __forceinline__ bool is_hidden(float weight) {
  return __float_as_int(weight) == static_cast<int>(0x80000000);
}

__device__ __forceinline__ float element(const float4& x, int i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// acc[i][.] += sum over four keys of weight[i] value[key][.], keys in increasing order. Columns are gone through to and
// fro, so that every product shares a factor with the one before it: the register file delivers two operands in a
// cycle, and the third comes out of the operand's cache.
template <bool Hides, int Rows>
__device__ __forceinline__ void add_products(float (&acc)[Rows][4], const float4 (&weight)[Rows],
                                             const float4 (&value)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const float w = element(weight[i], k);
      if (Hides && is_hidden(w)) continue;
#pragma unroll
      for (int along = 0; along < 4; ++along) {
        const int e = i % 2 == 0 ? along : 3 - along;
        acc[i][e] = fmaf(w, element(value[k], e), acc[i][e]);
      }
    }
}

}  // namespace attn
