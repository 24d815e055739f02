// Reductions over the lanes of a warp and over a thread block. Butterflies: every lane ends with the same bits, and the
// order of the operands is fixed, so that a result depends on the values alone.
#pragma once

#include <cuda_runtime.h>

#include "impl/cuda/mma.cuh"

namespace attn {

struct MaxOf {
  __device__ float operator()(float a, float b) const { return max_nan(a, b); }
};
struct SumOf {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Over groups of Lanes neighbouring lanes, a power of two up to 32.
template <int Lanes, class Op>
__device__ __forceinline__ float reduce_lanes(float x, Op op) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) x = op(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

// Over all Threads threads of a block, or of each group of Threads <= 32 neighbouring lanes. `shared` holds Threads /
// 32 values and must not be read or written by others until the next barrier.
template <int Threads, class Op>
__device__ __forceinline__ float reduce_threads(float x, Op op, float* shared) {
  if constexpr (Threads <= 32) {
    return reduce_lanes<Threads>(x, op);
  } else {
    x = reduce_lanes<32>(x, op);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    float y = shared[0];
#pragma unroll
    for (int w = 1; w < Threads / 32; ++w) y = op(y, shared[w]);
    return y;
  }
}

}  // namespace attn
