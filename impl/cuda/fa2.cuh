// The kernel of FlashAttention-2. One block of four warps for a block of queries of one head.
#pragma once

#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_store.cuh"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

// Two fragments of 16 rows to a warp halve the reads of K and V from shared memory; wide heads leave no registers for
// it.
template <int D>
struct Fa2Shape {
  static constexpr int parts = D <= 128 ? 2 : 1;
  static constexpr int block_q = 4 * 16 * parts;
  static constexpr int block_k = D <= 64 ? 128 : 64;
};

// What a block works on. Needed at partial tiles and at the end only, so it stays in shared memory: the main loop has
// no register to spare.
struct Fa2Place {
  TileRows<false> tile;
  Visibility see;
};

template <int D>
struct Fa2Memory {
  using Shape = Fa2Shape<D>;
  using Layout = TileLayout<D>;
  alignas(1024) char q[Layout::bytes(Shape::block_q)];
  char k[Layout::bytes(Shape::block_k)];
  char v[Layout::bytes(Shape::block_k)];
  Fa2Place place;
  std::uint8_t codes[Shape::block_q * Shape::block_k];  // used under tensor masks only
};

template <class T, int D>
__global__ void __launch_bounds__(BlockTeam::size, 2)
    fa2_kernel(const __grid_constant__ TileProblem problem, const bool last_first) {
  using Shape = Fa2Shape<D>;
  using Tile = WarpTile<T, D, Shape::parts, Shape::block_k>;
  extern __shared__ char shared[];
  Fa2Memory<D>& memory = *reinterpret_cast<Fa2Memory<D>*>(shared);
  const ForwardView& view = problem.view;

  const unsigned nth = blockIdx.x % problem.query_blocks, head = blockIdx.x / problem.query_blocks;
  const IndexRange rows = block_range({0, view.tq}, problem.block_q, last_first ? problem.query_blocks - 1 - nth : nth);
  const unsigned b = head / problem.q_heads, h = head % problem.q_heads;
  const Visibility see = view.visibility(b);
  if (threadIdx.x == 0) memory.place = {{b, h, rows.begin, 0, 1, static_cast<int>(rows.size())}, see};
  const IndexRange visited = visited_range(see, rows, {0, view.tk});
  const int tiles = static_cast<int>(block_count(visited, problem.block_k));
  const bool tensor_masked = view.tensor_masked();
  const int full = static_cast<int>(full_tiles(see, rows, visited, problem.block_k));

  // The next tile of each.
  const T* k = view.k.row<const T>(b, h / problem.group, 0);
  const T* v = view.v.row<const T>(b, h / problem.group, 0);
  const std::uint32_t q_tile = shared_address(memory.q), k_tile = shared_address(memory.k),
                      v_tile = shared_address(memory.v);
  const auto load_next = [&](std::uint32_t to, const T*& from, Index stride, const RowFormat& format, IndexRange keys) {
    load_tile<T, D, Shape::block_k, BlockTeam>(to, from, stride, static_cast<int>(keys.size()), format);
    commit_copies();
    from += problem.block_k * stride;
  };

  const int first_row = static_cast<int>(threadIdx.x) / 32 * Tile::rows;
  const float c2 = view.scale * log2_e;
  Tile warp;
  warp.clear();
  if (tiles > 0) {
    load_tile<T, D, Shape::block_q, BlockTeam>(q_tile, view.q.row<const T>(b, h, rows.begin), view.q.stride[2],
                                               static_cast<int>(rows.size()), problem.q_format);
    load_next(k_tile, k, view.k.stride[2], problem.k_format, block_range(visited, problem.block_k, 0));
  }
  __syncthreads();  // the place is there
  for (int t = 0; t < tiles; ++t) {
    const IndexRange keys = block_range(visited, problem.block_k, t);
    if (tensor_masked)
      stage_mask<Shape::block_k, BlockTeam>(memory.codes, Shape::block_q, view, memory.place.tile, memory.place.see,
                                            keys);
    wait_for_copies<0>();
    __syncthreads();  // K is there, and V of the tile before is done with
    load_next(v_tile, v, view.v.stride[2], problem.v_format, keys);

    typename Tile::Scores x;
    Tile::scores(x, q_tile + TileLayout<D>::bytes(first_row), k_tile);
    if (tensor_masked) {
      Tile::hide_by_codes(x, memory.codes + first_row * Shape::block_k);
    } else if (t >= full || keys.size() < Shape::block_k) {
      int limit[Shape::parts][2];
      for (int part = 0; part < Shape::parts; ++part)
        for (int half = 0; half < 2; ++half)
          limit[part][half] = memory.place.tile.visible_keys(memory.place.see, first_row + Tile::row(part, half), keys);
      Tile::hide_beyond(x, limit);
    }

    wait_for_copies<0>();
    __syncthreads();  // V is there, and K is done with
    if (t + 1 < tiles)
      load_next(k_tile, k, view.k.stride[2], problem.k_format, block_range(visited, problem.block_k, t + 1));
    if (tensor_masked) {
      clear_unseen_values<Shape::block_k, TileLayout<D>, BlockTeam>(v_tile, memory.codes, Shape::block_q);
      __syncthreads();
    }
    warp.weigh(x, c2);
    warp.accumulate(x, v_tile);
  }
  float l[Shape::parts][2], inverse[Shape::parts][2];
  Tile::each_row([&](int part, int half) {
    l[part][half] = quad_sum(warp.l[part][half]);
    inverse[part][half] = reciprocal(l[part][half]);
  });
  // The warp's rows of Q are free: nobody else reads them.
  store_rows<T, D>(problem, memory.place.tile, first_row, warp, l, inverse, q_tile + TileLayout<D>::bytes(first_row));
}

}  // namespace attn
