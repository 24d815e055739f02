// O and LSE of a warp's rows, by way of shared memory: fragments hold two neighbouring elements, memory wants sixteen
// bytes.
#pragma once

#include "impl/cuda/store.cuh"
#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

namespace detail {

__device__ __forceinline__ void stage_pair(std::uint32_t to, float x, float y, float) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}
template <class T>
__device__ __forceinline__ void stage_pair(std::uint32_t to, float x, float y, T) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack_rounded<T>(x, y)) : "memory");
}

// acc times factor, as Out. A row of `staging` has room for D elements of 16 bits: fp32 goes in two halves.
template <class Out, int D, class Tile>
__device__ void store_values(const TileProblem& problem, const TileRows<false>& tile, int first_row, const Tile& warp,
                             const float (&factor)[Tile::parts][2], std::uint32_t staging) {
  using Layout = TileLayout<D>;
  constexpr int passes = sizeof(Out) / 2, width = D / passes, to_a_chunk = 16 / sizeof(Out);
  const View& view = problem.view.o;
  Out* const o = view.row<Out>(tile.batch, tile.first_head, tile.query + first_row);
#pragma unroll
  for (int pass = 0; pass < passes; ++pass) {
    __syncwarp();
    Tile::each_row([&](int part, int half) {
      const bool empty = is_empty(warp.m[part][half]);
#pragma unroll
      for (int t = 0; t < width / 8; ++t) {
        const float* pair = &warp.acc[part][width / 8 * pass + t][2 * half];
        const int byte = (8 * t + Tile::column()) * static_cast<int>(sizeof(Out));
        stage_pair(staging + Layout::offset(Tile::row(part, half), byte / 16) + byte % 16,
                   empty ? 0.0f : pair[0] * factor[part][half], empty ? 0.0f : pair[1] * factor[part][half], Out{});
      }
    });
    __syncwarp();
#pragma unroll 2
    for (int at = Tile::lane(); at < Tile::rows * Layout::chunks; at += 32) {
      const int row = at / Layout::chunks, chunk = at % Layout::chunks, e = width * pass + to_a_chunk * chunk;
      if (first_row + row >= tile.count || e >= problem.view.d_v) continue;
      const uint4 values = load_shared(staging + Layout::offset(row, chunk));
      Out* const to = o + row * view.stride[2] + e * view.stride[3];
      if (problem.o_chunked) {
        *reinterpret_cast<uint4*>(to) = values;
      } else {
#pragma unroll
        for (int i = 0; i < to_a_chunk; ++i) to[i * view.stride[3]] = reinterpret_cast<const Out*>(&values)[i];
      }
    }
  }
}

}  // namespace detail

// O = acc times factor and LSE = scale m + log l, where l is the sum of the whole row. No key seen: O = 0, LSE = -inf.
// staging: as many rows of a tile of width D as the warp has, which nobody needs any more.
template <class T, int D, class Tile>
__device__ void store_rows(const TileProblem& problem, const TileRows<false>& tile, int first_row, const Tile& warp,
                           const float (&l)[Tile::parts][2], const float (&factor)[Tile::parts][2],
                           std::uint32_t staging) {
  const ForwardView& view = problem.view;
  Tile::each_row([&](int part, int half) {
    const int row = first_row + Tile::row(part, half);
    const float m = warp.m[part][half];
    if (row < tile.count && Tile::column() == 0)
      store_lse(view, tile.batch, tile.first_head, tile.query + row, row_lse(view.scale, m, l[part][half]));
  });
  if (view.o_is_fp32)
    detail::store_values<float, D>(problem, tile, first_row, warp, factor, staging);
  else
    detail::store_values<T, D>(problem, tile, first_row, warp, factor, staging);
}

}  // namespace attn
