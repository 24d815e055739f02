// From a warpgroup's accumulators to O and LSE in global memory, whatever their strides.
#pragma once

#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/hopper/softmax.cuh"
#include "impl/cuda/store.cuh"

namespace attn::hopper {

// Word j of thread i of a quad goes to word i of thread j.
__device__ __forceinline__ void transpose_quad(std::uint32_t (&w)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
  for (int j = 0; j < 4; j += 2) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? w[j] : w[j + 1], 1);
    (odd ? w[j] : w[j + 1]) = got;
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, high ? w[j] : w[j + 2], 2);
    (high ? w[j] : w[j + 2]) = got;
  }
}

// One row of acc (r = 0: the thread's lower, 1: the upper) in the input format: every thread of a quad ends up with 8
// neighbouring columns of every 32, so that a warp writes whole sectors.
template <class T, int N>
__device__ __forceinline__ void store_row_16(const float (&acc)[N], int r, float inverse, bool live, T* row, int d_v,
                                             Index step, bool vector) {
  const int lane = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < N; i += 16) {
    std::uint32_t w[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) w[j] = pack<T>(acc[i + 4 * j + 2 * r] * inverse, acc[i + 4 * j + 2 * r + 1] * inverse);
    transpose_quad(w);
    const int column = i * 2 + 8 * lane;
    if (!live || column >= d_v) continue;
    if (vector) {
      *reinterpret_cast<uint4*>(row + column) = make_uint4(w[0], w[1], w[2], w[3]);
    } else {
      auto* words = reinterpret_cast<std::uint16_t*>(row) + column * step;
#pragma unroll 1
      for (int j = 0; j < 8; ++j, words += step) {
        const std::uint32_t pair = j < 4 ? (j < 2 ? w[0] : w[1]) : (j < 6 ? w[2] : w[3]);
        *words = static_cast<std::uint16_t>(pair >> (j % 2 * 16));
      }
    }
  }
}

template <int N>
__device__ __forceinline__ void store_row_32(const float (&acc)[N], int r, float inverse, bool live, float* row,
                                             int d_v, Index step, bool vector) {
  const int first = 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int i = 2 * r; i < N; i += 4) {
    const int column = i / 4 * 8 + first;
    if (!live || column >= d_v) continue;
    const float low = acc[i] * inverse, high = acc[i + 1] * inverse;
    if (vector) {
      *reinterpret_cast<float2*>(row + column) = make_float2(low, high);
    } else {
      row[column * step] = low;
      row[(column + 1) * step] = high;
    }
  }
}

// Divides and stores O of the thread's rows, `first` and `first` + 8. A row without keys (inverse 0) is 0 whatever acc
// holds: it may be NaN, 0 times a value that only other rows of a tile see.
template <class T, int N>
__device__ __forceinline__ void store_rows(const ForwardView& p, float (&acc)[N], const float (&inverse)[2],
                                           Index batch, Index head, Index first, bool vector) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Index i = first + 8 * r;
    const bool live = i < p.tq;
    if (inverse[r] == 0.0f) {
#pragma unroll
      for (int j = 2 * r; j < N; j += 4) acc[j] = acc[j + 1] = 0.0f;
    }
    const int d_v = static_cast<int>(p.d_v);
    if (p.o_is_fp32)
      store_row_32(acc, r, inverse[r], live, p.o.row<float>(batch, head, i), d_v, p.o.stride[3], vector);
    else
      store_row_16<T>(acc, r, inverse[r], live, p.o.row<T>(batch, head, i), d_v, p.o.stride[3], vector);
  }
}

// LSE of closed rows; -inf of a row without keys.
__device__ __forceinline__ void store_lse(const ForwardView& p, const RowPair& rows, Index batch, Index head,
                                          Index first) {
  if (!p.lse.data || threadIdx.x % 4 != 0) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Index i = first + 8 * r;
    if (i >= p.tq) continue;
    *p.lse.row<float>(batch, head, i) = row_lse(p.scale, rows.m[r], rows.l[r]);
  }
}

// Rows of which none sees a key.
__device__ inline void store_empty(const ForwardView& p, Index batch, Index head, Index first) {
  for (Index i = first; i < first + 16 && i < p.tq; i += 8) {
    for (Index j = threadIdx.x % 4; j < p.d_v; j += 4) {
      if (p.o_is_fp32)
        p.o.row<float>(batch, head, i)[j * p.o.stride[3]] = 0.0f;
      else
        p.o.row<std::uint16_t>(batch, head, i)[j * p.o.stride[3]] = 0;
    }
  }
  store_lse(p, RowPair(), batch, head, first);
}

}  // namespace attn::hopper
