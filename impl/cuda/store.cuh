// Writing O and LSE. O is stored in the input format or in fp32, rounded to nearest even.
#pragma once

#include "impl/cuda/forward_view.cuh"

namespace attn {

__device__ __forceinline__ __half rounded(float x, __half) { return __float2half_rn(x); }
__device__ __forceinline__ __nv_bfloat16 rounded(float x, __nv_bfloat16) { return __float2bfloat16_rn(x); }
__device__ __forceinline__ float rounded(float x, float) { return x; }

template <class T>
__device__ __forceinline__ void store_value(const ForwardView& view, Index b, Index h, Index i, Index e, float x) {
  if (view.o_is_fp32)
    view.o.row<float>(b, h, i)[e * view.o.stride[3]] = x;
  else
    view.o.row<T>(b, h, i)[e * view.o.stride[3]] = rounded(x, T{});
}

// LSE of a row whose largest score is m and whose sum of weights is l; -inf of a row without keys. A row all of whose
// weights were lost, because c2 m is rounded by more than exp2 reaches, has keys and no LSE: NaN, so that nobody takes
// it for one without.
__device__ __forceinline__ float row_lse(float scale, float m, float l) {
  return is_empty(m) ? m : l == 0.0f ? __int_as_float(0x7fffffff) : fused(scale, m, logf(l));
}

__device__ __forceinline__ void store_lse(const ForwardView& view, Index b, Index h, Index i, float x) {
  if (view.lse.data) *view.lse.row<float>(b, h, i) = x;
}

}  // namespace attn
