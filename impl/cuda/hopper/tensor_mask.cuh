// Boolean and additive masks: entries are read from global memory, one for each score. Right, and not fast.
#pragma once

#include "impl/cuda/hopper/block.cuh"

namespace attn::hopper {

// Scores of rows `row` and `row` + 8 at keys from `first_key` on, in the accumulator layout (wgmma.cuh).
template <int N>
__device__ __forceinline__ void mask_by_tensor(float (&x)[N], const ForwardView& p, int batch, int head, int row,
                                               int first_key, const int (&end)[2]) {
  const int first = first_key + 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int r = i / 2 % 2, key = first + i / 4 * 8 + i % 2;
    x[i] = key < end[r] ? p.masked(x[i], batch, head, row + 8 * r, key) : neg_infinity<float>;
  }
}

// Whether any of the rows sees the key.
__device__ inline bool any_row_sees(const ForwardView& p, const Visibility& see, int batch, int head, IndexRange rows,
                                    Index key) {
  for (Index i = rows.begin; i < rows.end; ++i)
    if (see.visible(i, key) && p.masked(0.0f, batch, head, i, key) != neg_infinity<float>) return true;
  return false;
}

// Clears the rows of a tile of v that hold a NaN or an infinity and that none of the query rows sees: their weights are
// all 0, and 0 times NaN is NaN. One warp.
template <class T, int Rows, int Panels>
__device__ void clear_unseen(Buffer<T, Rows, Panels>& v, const ForwardView& p, const Visibility& see, int batch,
                             int head, IndexRange rows, int first_key) {
  constexpr std::uint32_t exponent = sizeof(T) == 2 && std::is_same_v<T, __half> ? 0x7c00u : 0x7f80u;
  constexpr int words = panel_columns / 2;
  for (int r = static_cast<int>(threadIdx.x % warp_size); r < Rows; r += warp_size) {
    bool finite = true;
    for (int panel = 0; panel < Panels; ++panel) {
      const auto* row = reinterpret_cast<const std::uint32_t*>(v.panel[panel][r]);
      for (int w = 0; w < words; ++w)
        finite = finite && (row[w] & exponent) != exponent && (row[w] >> 16 & exponent) != exponent;
    }
    if (finite || any_row_sees(p, see, batch, head, rows, first_key + r)) continue;
    for (int panel = 0; panel < Panels; ++panel)
      for (int w = 0; w < words; ++w) reinterpret_cast<std::uint32_t*>(v.panel[panel][r])[w] = 0;
  }
}

}  // namespace attn::hopper
