// The kernel of FlashAttention-2. One block of four warps for a block of queries of one head.
#pragma once

#include "impl/cuda/store.cuh"
#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

// Two fragments of 16 rows to a warp halve the reads of K and V from shared memory; wide heads leave no registers for
// it.
template <int D>
struct Fa2Shape {
  static constexpr int parts = D <= 128 ? 2 : 1;
  static constexpr int block_q = 4 * 16 * parts;
  static constexpr int block_k = 64;
};

template <int D>
struct Fa2Memory {
  using Shape = Fa2Shape<D>;
  using Layout = TileLayout<D>;
  alignas(1024) char q[Layout::bytes(Shape::block_q)];
  char k[Layout::bytes(Shape::block_k)];
  char v[Layout::bytes(Shape::block_k)];
  std::uint8_t codes[Shape::block_q * Shape::block_k];  // used under tensor masks only
};

// O = acc / l and LSE = scale m + log l of a warp's rows. No key seen: O = 0, LSE = -inf.
template <class T, class Tile>
__device__ void store_rows(const TileProblem& problem, const TileRows<false>& tile, int first_row, Tile& warp) {
  const ForwardView& view = problem.view;
#pragma unroll
  for (int part = 0; part < Tile::parts; ++part)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float l = quad_sum(warp.l[part][half]), m = warp.m[part][half];
      const int row = first_row + Tile::row(part, half);
      if (row >= tile.count) continue;
      const bool empty = is_empty(m);
      const float inverse = reciprocal(l);
      const Index b = tile.batch, h = tile.head(row), i = tile.query_of(row);
      if (Tile::column() == 0) store_lse(view, b, h, i, empty ? m : fused(view.scale, m, logf(l)));
#pragma unroll
      for (int t = 0; t < Tile::width / 8; ++t) {
        const int e = 8 * t + Tile::column();
        if (e >= view.d_v) break;
        const float* pair = &warp.acc[part][t][2 * half];
        store_pair<T>(view, problem.o_paired, b, h, i, e, empty ? 0.0f : pair[0] * inverse,
                      empty ? 0.0f : pair[1] * inverse);
      }
    }
}

template <class T, int D>
__global__ void __launch_bounds__(BlockTeam::size, 2)
    fa2_kernel(const __grid_constant__ TileProblem problem, const bool last_first) {
  using Shape = Fa2Shape<D>;
  using Tile = WarpTile<T, D, Shape::parts, Shape::block_k>;
  extern __shared__ char shared[];
  Fa2Memory<D>& memory = *reinterpret_cast<Fa2Memory<D>*>(shared);
  const ForwardView& view = problem.view;

  const Index query_blocks = block_count({0, view.tq}, problem.block_q);
  const Index nth = blockIdx.x % query_blocks, head = blockIdx.x / query_blocks;
  const IndexRange rows = block_range({0, view.tq}, problem.block_q, last_first ? query_blocks - 1 - nth : nth);
  const Index b = head / view.q_heads, h = head % view.q_heads;
  const TileRows<false> tile{b, h, rows.begin, 0, 1, static_cast<int>(rows.size())};

  const Visibility see = view.visibility(b);
  const IndexRange visited = visited_range(see, rows, {0, view.tk});
  const Index tiles = block_count(visited, problem.block_k);
  const bool tensor_masked = view.tensor_masked();
  const Index full = full_tiles(see, rows, visited, problem.block_k);

  const T* const q = view.q.row<const T>(b, h, rows.begin);
  const T* const k = view.k.row<const T>(b, view.kv_head(h), 0);
  const T* const v = view.v.row<const T>(b, view.kv_head(h), 0);
  const std::uint32_t q_tile = shared_address(memory.q), k_tile = shared_address(memory.k),
                      v_tile = shared_address(memory.v);
  const auto load = [&](std::uint32_t to, const T* from, const View& t, Index d, bool chunked, IndexRange keys) {
    load_tile<T, D, BlockTeam>(to, Shape::block_k, static_cast<int>(keys.size()), static_cast<int>(d), chunked,
                               t.stride[3], [=](int row) { return from + (keys.begin + row) * t.stride[2]; });
    commit_copies();
  };

  const int first_row = static_cast<int>(threadIdx.x) / 32 * Tile::rows;
  const float c2 = view.scale * log2_e;
  Tile warp;
  warp.clear();
  if (tiles > 0) {
    load_tile<T, D, BlockTeam>(q_tile, Shape::block_q, tile.count, static_cast<int>(view.d_qk), problem.q_chunked,
                               view.q.stride[3], [=](int row) { return q + row * view.q.stride[2]; });
    load(k_tile, k, view.k, view.d_qk, problem.k_chunked, block_range(visited, problem.block_k, 0));
  }
  for (Index t = 0; t < tiles; ++t) {
    const IndexRange keys = block_range(visited, problem.block_k, t);
    if (tensor_masked) stage_mask<Shape::block_k, BlockTeam>(memory.codes, Shape::block_q, view, tile, see, keys);
    wait_for_copies<0>();
    __syncthreads();  // K is there, and V of the tile before is done with
    load(v_tile, v, view.v, view.d_v, problem.v_chunked, keys);

    typename Tile::Scores x;
    Tile::scores(x, q_tile + TileLayout<D>::bytes(first_row), k_tile);
    if (tensor_masked) {
      Tile::hide_by_codes(x, memory.codes + first_row * Shape::block_k);
    } else if (t >= full || keys.size() < Shape::block_k) {
      int limit[Shape::parts][2];
      for (int part = 0; part < Shape::parts; ++part)
        for (int half = 0; half < 2; ++half)
          limit[part][half] = tile.visible_keys(see, first_row + Tile::row(part, half), keys);
      Tile::hide_beyond(x, limit);
    }

    wait_for_copies<0>();
    __syncthreads();  // V is there, and K is done with
    if (t + 1 < tiles)
      load(k_tile, k, view.k, view.d_qk, problem.k_chunked, block_range(visited, problem.block_k, t + 1));
    if (tensor_masked) {
      clear_unseen_values<Shape::block_k, TileLayout<D>, BlockTeam>(v_tile, memory.codes, Shape::block_q);
      __syncthreads();
    }
    float unused[Shape::parts][2];
    warp.template weigh<Rescale::deferred>(x, c2, unused);
    warp.accumulate(x, v_tile);
  }
  store_rows<T>(problem, tile, first_row, warp);
}

}  // namespace attn
