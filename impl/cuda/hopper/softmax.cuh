// The online softmax of the two rows that a thread shares with the three others of its quad, in the accumulator layout
// of the matrix instruction (wgmma.cuh).
#pragma once

#include "impl/core/online_softmax.h"
#include "impl/cuda/approx.cuh"
#include "impl/cuda/hopper/wgmma.cuh"

namespace attn::hopper {

// max_or_nan in one instruction.
__device__ __forceinline__ float max_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

// Over the four threads that share a row; the same bits in each.
__device__ __forceinline__ float quad_max(float x) {
  x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return max_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

struct RowPair {
  float m[2] = {neg_infinity<float>, neg_infinity<float>};
  float l[2] = {0.0f, 0.0f};  // this thread's share of the row
  float factor[2];            // what acc has to be multiplied with before the latest weights join

  // Scores become weights. A tile that a row does not see at all leaves its state as it is: the factor is exp2(0) = 1
  // unless the maximum rises (or there is no state yet), and every weight is 0.
  template <int N>
  __device__ __forceinline__ void step(float (&x)[N], float c2) {
    // Two chains for each row: a maximum takes a few cycles, and there is nothing else to do meanwhile.
    float top[2][2];
#pragma unroll
    for (int r = 0; r < 2; ++r) top[r][0] = top[r][1] = m[r];
#pragma unroll
    for (int i = 0; i < N; ++i) top[i / 2 % 2][i / 4 % 2] = max_nan(top[i / 2 % 2][i / 4 % 2], x[i]);
    float m_c2[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float old_c2 = m[r] * c2;
      m[r] = quad_max(max_nan(top[r][0], top[r][1]));
      m_c2[r] = finite_max(m[r]) * c2;
      factor[r] = exp2_flushed(old_c2 - m_c2[r]);  // from frame to frame: the offsets of a row do not add up
    }
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int r = i / 2 % 2;
      x[i] = exp2_flushed(exp2_argument(x[i], c2, m_c2[r]));
      sum[r] += x[i];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) l[r] = fused(l[r], factor[r], sum[r]);
  }

  // Completes l, and what acc has to be multiplied with at the end: 0 marks a row without keys, and nothing else.
  // Weights that overflowed, because c2 m is rounded by more than exp2 reaches, sum to infinity: NaN.
  __device__ __forceinline__ void close(float (&inverse)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      l[r] = quad_sum(l[r]);
      inverse[r] = is_empty(m[r]) ? 0.0f : l[r] == -neg_infinity<float> ? __int_as_float(0x7fffffff) : reciprocal(l[r]);
    }
  }

  template <int N>
  __device__ __forceinline__ void rescale(float (&acc)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) acc[i] *= factor[i / 2 % 2];
  }
};

// Scores at and beyond limit[r] keys of the tile become -inf.
template <int N>
__device__ __forceinline__ void mask_tail(float (&x)[N], const int (&limit)[2]) {
  const int first = 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (first + column >= limit[i / 2 % 2]) x[i] = neg_infinity<float>;
  }
}

}  // namespace attn::hopper
