// The kernel of FlashAttention-1: one block for a slab of query blocks of one head. A tile of K and V is staged once
// and every query block of the slab is updated with it; O (normalised, fp32), m and l of a row live in the workspace
// between tiles. Only the warp that owns a row touches its state.
#pragma once

#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_store.cuh"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

inline constexpr int fa1_block_q = 64;
inline constexpr int fa1_block_k = 64;

template <int D>
struct Fa1Memory {
  using Layout = TileLayout<D>;
  alignas(1024) char q[Layout::bytes(fa1_block_q)];
  char k[Layout::bytes(fa1_block_k)];
  char v[Layout::bytes(fa1_block_k)];
  std::uint8_t codes[fa1_block_q * fa1_block_k];  // used under tensor masks only
};

// The state of all rows, [batch, head, query] flattened. d_v is a multiple of 8, so that ml is aligned behind o.
struct Fa1State {
  float* o;    // [rows][d_v]
  float2* ml;  // [rows]

  static std::size_t o_bytes(Index rows, Index d_v) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(d_v) * sizeof(float);
  }
  static std::size_t bytes(Index rows, Index d_v) {
    return o_bytes(rows, d_v) + static_cast<std::size_t>(rows) * sizeof(float2);
  }
  Fa1State(void* workspace, Index rows, Index d_v)
      : o(static_cast<float*>(workspace)),
        ml(reinterpret_cast<float2*>(static_cast<char*>(workspace) + o_bytes(rows, d_v))) {}
};

// Rows of the warp from or to memory; `first` is the flat index of the warp's row 0, `count` the rows that exist.
template <class Tile>
__device__ void load_state(const Fa1State& state, Index first, int count, Index d_v, Tile& warp) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = Tile::row(0, half);
    if (row >= count) continue;
    const float2 ml = state.ml[first + row];
    warp.m[0][half] = ml.x;
    warp.l[0][half] = ml.y;
    const float* o = state.o + (first + row) * d_v;
#pragma unroll
    for (int t = 0; t < Tile::width / 8; ++t) {
      const int e = 8 * t + Tile::column();
      if (e >= d_v) break;
      const float2 pair = *reinterpret_cast<const float2*>(o + e);
      warp.acc[0][t][2 * half] = pair.x;
      warp.acc[0][t][2 * half + 1] = pair.y;
    }
  }
}

template <class Tile>
__device__ void save_state(const Fa1State& state, Index first, int count, Index d_v, const Tile& warp) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = Tile::row(0, half);
    if (row >= count) continue;
    if (Tile::column() == 0) state.ml[first + row] = make_float2(warp.m[0][half], warp.l[0][half]);
    float* o = state.o + (first + row) * d_v;
#pragma unroll
    for (int t = 0; t < Tile::width / 8; ++t) {
      const int e = 8 * t + Tile::column();
      if (e >= d_v) break;
      *reinterpret_cast<float2*>(o + e) = make_float2(warp.acc[0][t][2 * half], warp.acc[0][t][2 * half + 1]);
    }
  }
  __syncwarp();  // the four lanes of a row share its m and l
}

template <class T, int D>
__global__ void __launch_bounds__(BlockTeam::size, 2)
    fa1_kernel(const __grid_constant__ TileProblem problem, const unsigned blocks_each, const Fa1State state) {
  using Tile = WarpTile<T, D, 1, fa1_block_k>;
  extern __shared__ char shared[];
  Fa1Memory<D>& memory = *reinterpret_cast<Fa1Memory<D>*>(shared);
  const ForwardView& view = problem.view;
  const IndexRange all_blocks{0, problem.query_blocks};
  const unsigned slabs = (problem.query_blocks - 1) / blocks_each + 1;
  const IndexRange slab = block_range(all_blocks, blocks_each, blockIdx.x % slabs);
  const unsigned head = blockIdx.x / slabs, b = head / problem.q_heads, h = head % problem.q_heads;
  const auto rows_of = [&](Index block) { return block_range({0, view.tq}, problem.block_q, block); };

  const Visibility see = view.visibility(b);
  const IndexRange slab_rows{rows_of(slab.begin).begin, rows_of(slab.end - 1).end};
  const IndexRange visited = visited_range(see, slab_rows, {0, view.tk});
  const bool tensor_masked = view.tensor_masked();
  const T* const q = view.q.row<const T>(b, h, 0);
  const T* const k = view.k.row<const T>(b, h / problem.group, 0);
  const T* const v = view.v.row<const T>(b, h / problem.group, 0);
  const std::uint32_t q_tile = shared_address(memory.q), k_tile = shared_address(memory.k),
                      v_tile = shared_address(memory.v);
  const auto load = [](std::uint32_t to, const T* from, const View& t, const RowFormat& format, IndexRange rows) {
    load_tile<T, D, fa1_block_k, BlockTeam>(to, from + rows.begin * t.stride[2], t.stride[2],
                                            static_cast<int>(rows.size()), format);
  };

  const int first_row = static_cast<int>(threadIdx.x) / 32 * Tile::rows;
  const float c2 = view.scale * log2_e;
  Tile warp;
  for (Index t = 0; t < block_count(visited, problem.block_k); ++t) {
    const IndexRange keys = block_range(visited, problem.block_k, t);
    __syncthreads();  // the tile before is done with
    load(k_tile, k, view.k, problem.k_format, keys);
    if (!tensor_masked) load(v_tile, v, view.v, problem.v_format, keys);
    for (Index block = slab.begin; block < slab.end; ++block) {
      const IndexRange rows = rows_of(block);
      const TileClass seen = classify(see, rows, keys);
      if (seen == TileClass::skip) continue;
      const TileRows<false> tile{b, h, rows.begin, 0, 1, static_cast<int>(rows.size())};
      const Index first = head * view.tq + rows.begin + first_row;
      const int count = tile.count - first_row;
      __syncthreads();  // the block before is done with
      load(q_tile, q, view.q, problem.q_format, rows);
      if (tensor_masked) {
        // V anew for each block, which clears in it what it does not see.
        load(v_tile, v, view.v, problem.v_format, keys);
        stage_mask<fa1_block_k, BlockTeam>(memory.codes, fa1_block_q, view, tile, see, keys);
      }
      commit_copies();
      warp.clear();
      if (t > 0) load_state(state, first, count, view.d_v, warp);
      wait_for_copies<0>();
      __syncthreads();  // everything is there
      if (tensor_masked) {
        clear_unseen_values<fa1_block_k, TileLayout<D>, BlockTeam>(v_tile, memory.codes, fa1_block_q);
        __syncthreads();
      }

      typename Tile::Scores x;
      Tile::scores(x, q_tile + TileLayout<D>::bytes(first_row), k_tile);
      if (tensor_masked) {
        Tile::hide_by_codes(x, memory.codes + first_row * fa1_block_k);
      } else if (seen == TileClass::partial || keys.size() < fa1_block_k) {
        int limit[1][2];
        for (int half = 0; half < 2; ++half)
          limit[0][half] = tile.visible_keys(see, first_row + Tile::row(0, half), keys);
        Tile::hide_beyond(x, limit);
      }
      float after[1][2];
      warp.weigh_normalised(x, c2, after);
      warp.accumulate(x, v_tile);
      warp.scale_rows(after);
      save_state(state, first, count, view.d_v, warp);
    }
  }

  for (Index block = slab.begin; block < slab.end; ++block) {
    const IndexRange rows = rows_of(block);
    const TileRows<false> tile{b, h, rows.begin, 0, 1, static_cast<int>(rows.size())};
    warp.clear();
    // A block that saw no tile has no state yet.
    if (visited_range(see, rows, {0, view.tk}).size() > 0)
      load_state(state, head * view.tq + rows.begin + first_row, tile.count - first_row, view.d_v, warp);
    // O is normalised already, and l summed. The warp's rows of Q are free: nobody else reads them.
    const float one[1][2] = {{1.0f, 1.0f}};
    store_rows<T, D>(problem, tile, first_row, warp, warp.l, one, q_tile + TileLayout<D>::bytes(first_row));
  }
}

}  // namespace attn
