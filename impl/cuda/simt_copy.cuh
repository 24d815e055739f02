// fp32 tiles from global to shared memory by asynchronous copies: 16 bytes at a time where base and strides allow it,
// else element by element. The same values arrive either way.
#pragma once

#include <cuda_runtime.h>

#include "impl/attention.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/mma.cuh"

namespace attn {

// Whether every row of the tensor can be read 16 bytes at a time.
inline bool rows_by_fours(const attn_tensor& t) {
  if (reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0 || t.stride[3] != 1) return false;
  for (int axis = 0; axis < 3; ++axis)
    if (t.shape[axis] > 1 && t.stride[axis] % 4 != 0) return false;
  return true;
}

// One element, or 0 without a look at `from`.
__device__ __forceinline__ void copy_element_async(std::uint32_t to, const float* from, bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(to), "l"(from), "r"(real ? 4 : 0) : "memory");
}

// Fills Rows rows of Width elements that stand Stride apart: row r < valid with the d elements at row_at(r), the rest
// with zeros. row_at is called for every row and looked at for the valid ones. All Threads threads of the block take
// part.
template <int Threads, int Rows, int Width, int Stride, class RowAt>
__device__ __forceinline__ void copy_rows(float* to, int valid, int d, bool by_fours, Index element, RowAt row_at) {
  const int thread = static_cast<int>(threadIdx.x);
  if (by_fours) {
    constexpr int fours = Width / 4, step = Threads / fours, copies = Rows * fours / Threads;
    static_assert(Threads % fours == 0 && Rows % step == 0);
    const int e = thread % fours * 4, first = thread / fours;
    const std::uint32_t base = shared_address(to + first * Stride + e);
    const bool inside = e < d;
#pragma unroll
    for (int n = 0; n < copies; ++n)
      copy_async(base + static_cast<std::uint32_t>(n * step * Stride) * 4u, row_at(first + n * step) + e,
                 inside && first + n * step < valid);
  } else {
    constexpr int step = Threads / Width;
    static_assert(Threads % Width == 0);
    const int e = thread % Width;
#pragma unroll 1
    for (int row = thread / Width; row < Rows; row += step)
      copy_element_async(shared_address(to + row * Stride + e), row_at(row) + e * element, e < d && row < valid);
  }
}

// The same for rows that are even distances apart.
template <int Threads, int Rows, int Width, int Stride>
__device__ __forceinline__ void copy_even_rows(float* to, int valid, int d, bool by_fours, Index element,
                                               const float* from, Index distance) {
  copy_rows<Threads, Rows, Width, Stride>(to, valid, d, by_fours, element,
                                          [=](int row) { return from + row * distance; });
}

}  // namespace attn
