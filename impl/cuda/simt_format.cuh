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

// acc[i][.] += sum over four keys of weight[i] value[key][.], keys in increasing order.
template <bool Hides, int Rows>
__device__ __forceinline__ void add_products(float (&acc)[Rows][4], const float4 (&weight)[Rows],
                                             const float4 (&value)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const float w = k == 0 ? weight[i].x : k == 1 ? weight[i].y : k == 2 ? weight[i].z : weight[i].w;
      if (Hides && is_hidden(w)) continue;
      acc[i][0] = fmaf(w, value[k].x, acc[i][0]);
      acc[i][1] = fmaf(w, value[k].y, acc[i][1]);
      acc[i][2] = fmaf(w, value[k].z, acc[i][2]);
      acc[i][3] = fmaf(w, value[k].w, acc[i][3]);
    }
}

}  // namespace attn
