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

// Fills `rows` rows of `Width` elements that stand `Stride` apart: row r < valid with the d elements at row_at(r), the
// rest with zeros. All Threads threads of the block take part.
template <int Threads, int Width, int Stride, class RowAt>
__device__ __forceinline__ void copy_rows(float* to, int rows, int valid, int d, bool by_fours, Index element,
                                          RowAt row_at) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::uint32_t base = shared_address(to);
  const auto address = [&](int row, int e) { return base + static_cast<std::uint32_t>(row * Stride + e) * 4u; };
  if (by_fours) {
    constexpr int fours = Width / 4;
    static_assert(Threads % fours == 0);
    const int e = thread % fours * 4;
#pragma unroll 4
    for (int row = thread / fours; row < rows; row += Threads / fours) {
      const bool real = row < valid && e < d;
      copy_async(address(row, e), row_at(real ? row : 0) + (real ? e : 0), real);
    }
  } else {
    static_assert(Threads % Width == 0);
    const int e = thread % Width;
#pragma unroll 4
    for (int row = thread / Width; row < rows; row += Threads / Width) {
      const bool real = row < valid && e < d;
      copy_element_async(address(row, e), row_at(real ? row : 0) + (real ? e * element : 0), real);
    }
  }
}

}  // namespace attn
