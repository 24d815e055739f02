// Rows of scores from memory to registers, so that every score is read once, 16 bytes at a time, however the row is
// aligned, and stands with the same lane whatever its alignment or stride.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"

namespace attn {

// Moves every score of a row one place forward: x[v][j] of lane t takes the one after it, which is x[v][j + 1], or the
// first of the next lane, or, for the last lane, that of the next vector of lane 0, where `beyond` follows the last
// vector. Groups of lanes with `still` false keep theirs.
template <int Lanes, int Vectors>
__device__ __forceinline__ void advance_scores(float (&x)[Vectors][4], float beyond, bool still, int lane) {
#pragma unroll
  for (int v = 0; v < Vectors; ++v) {
    const float wrapped = v + 1 < Vectors ? x[v + 1 < Vectors ? v + 1 : v][0] : beyond;
    const float next = __shfl_sync(0xffffffffu, lane == 0 ? wrapped : x[v][0], lane + 1, Lanes);
    if (Lanes == 32 || still) x[v][0] = x[v][1], x[v][1] = x[v][2], x[v][2] = x[v][3], x[v][3] = next;
  }
}

// x[v][j] of lane t becomes key 4 (v Lanes + t) + j of the `count` keys at `from`; -inf beyond them, whose weight is
// exactly 0. Lanes neighbouring lanes share a row. All 32 lanes of a warp call this together; count may be 0 or less.
//
// Rows that are contiguous but begin k elements after a multiple of 16 bytes are read in aligned fours as well, and
// shifted between the lanes. Nothing outside of the keys is read: fours that reach beyond them are read element by
// element.
template <int Lanes, int Vectors>
__device__ __forceinline__ void load_scores(float (&x)[Vectors][4], const float* from, Index stride, int count,
                                            int lane) {
#pragma unroll
  for (int v = 0; v < Vectors; ++v)
#pragma unroll
    for (int j = 0; j < 4; ++j) x[v][j] = neg_infinity<float>;
  const int own = 4 * lane;
  if (stride != 1) {
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = 4 * v * Lanes + own + j;
        if (key < count) x[v][j] = from[key * stride];
      }
    return;
  }

  const int k = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / 4 % 4), first = own - k;
#pragma unroll
  for (int v = 0; v < Vectors; ++v) {
    const int key = first + 4 * v * Lanes;
    if (key >= 0 && key + 4 <= count) {
      const float4 four = __ldcs(reinterpret_cast<const float4*>(from + key));
      x[v][0] = four.x, x[v][1] = four.y, x[v][2] = four.z, x[v][3] = four.w;
    }
  }
  if (!__any_sync(0xffffffffu, (k | count) % 4 != 0)) return;

    // At most two fours of a row reach beyond its keys: the first, and the one with the last key.
#pragma unroll
  for (int v = 0; v < Vectors; ++v) {
    const int key = first + 4 * v * Lanes;
    if (key < count && (key < 0 || key + 4 > count)) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (key + j >= 0 && key + j < count) x[v][j] = from[key + j];
    }
  }
  float beyond[3] = {neg_infinity<float>, neg_infinity<float>, neg_infinity<float>};
  if (lane == 0) {
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int key = 4 * Vectors * Lanes - k + j;
      if (j < k && key < count) beyond[j] = from[key];
    }
  }
#pragma unroll 1
  for (int step = 0; __any_sync(0xffffffffu, step < k); ++step) {
    advance_scores<Lanes>(x, beyond[0], step < k, lane);
    beyond[0] = beyond[1], beyond[1] = beyond[2];
  }
}

}  // namespace attn
