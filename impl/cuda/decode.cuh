// The first half of Flash-Decoding: one block for a tile of packed rows and one split of the keys.
//
// The heads that read one kv head are packed into the rows of a tile, so that every key is fetched once for all of
// them. The four warps hold the same 16 rows; key tiles of a split go to them in turn, each warp keeps its own state
// and its own ring of slots in shared memory, and nobody waits for anybody until the end, where the four states are
// merged. What counts here is bytes in flight: a warp has the next tile of K or V under way while it works on one, and
// three blocks fit on a multiprocessor.
#pragma once

#include "impl/cuda/combine.cuh"
#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

inline constexpr int decode_rows = 16;
inline constexpr int decode_block_k = 32;
inline constexpr int decode_warps = 4;
inline constexpr int decode_slots = 2;  // each holds a tile of K or one of V

// Thread blocks are numbered by batch entry, kv head, tile of packed rows, and split, the last the fastest.
struct DecodeGrid {
  unsigned group, kv_heads;         // query heads to a kv head; kv heads
  unsigned packed_rows, row_tiles;  // of one kv head
};

struct DecodeTeam : BlockTeam {
  static constexpr int size = 32 * decode_warps;
};

template <int D>
struct DecodeMemory {
  using Layout = TileLayout<D>;
  struct State {
    float acc[decode_rows][D];
    float m[decode_rows], l[decode_rows];
  };
  alignas(1024) char q[Layout::bytes(decode_rows)];
  union {
    alignas(1024) char slot[decode_warps][decode_slots][Layout::bytes(decode_block_k)];
    State state[decode_warps];  // after the last tile
  };
  std::uint8_t codes[decode_warps][decode_rows * decode_block_k];  // used under tensor masks only
};

// What a warp has is put where the others can read it.
template <int D, class Tile>
__device__ void publish(typename DecodeMemory<D>::State& state, Tile& warp) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = Tile::row(0, half);
    const float l = quad_sum(warp.l[0][half]);
    if (Tile::column() == 0) {
      state.m[row] = warp.m[0][half];
      state.l[row] = l;
    }
#pragma unroll
    for (int t = 0; t < D / 8; ++t)
      *reinterpret_cast<float2*>(&state.acc[row][8 * t + Tile::column()]) =
          make_float2(warp.acc[0][t][2 * half], warp.acc[0][t][2 * half + 1]);
  }
}

// The states of the warps merged in order, normalised and written as partials of the split.
template <int D>
__device__ void merge_and_store(const DecodeMemory<D>& memory, const TileProblem& problem, const TileRows<true>& tile,
                                const Partials& partials, Index split) {
  const ForwardView& view = problem.view;
  constexpr int to_a_row = 32 * decode_warps / decode_rows;
  const int row = static_cast<int>(threadIdx.x) / to_a_row, place = static_cast<int>(threadIdx.x) % to_a_row;
  if (row >= tile.count) return;
  const float c2 = view.scale * log2_e;
  float m = neg_infinity<float>, l = 0.0f, factor[decode_warps];
#pragma unroll
  for (int w = 0; w < decode_warps; ++w) m = max_nan(m, memory.state[w].m[row]);
#pragma unroll
  for (int w = 0; w < decode_warps; ++w) {
    factor[w] = moved_max_factor(memory.state[w].m[row], m, c2);
    l = fused(factor[w], memory.state[w].l[row], l);
  }
  const Index at =
      ((tile.batch * view.q_heads + tile.head(row)) * view.tq + tile.query_of(row)) * partials.splits + split;
  if (place == 0) partials.lse[at] = is_empty(m) ? m : fused(view.scale, m, logf(l));
  if (is_empty(m)) return;
  const float inverse = reciprocal(l);
  for (int e = 4 * place; e < view.d_v; e += 4 * to_a_row) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < decode_warps; ++w) {
      const float4 x = *reinterpret_cast<const float4*>(&memory.state[w].acc[row][e]);
      sum.x = fused(factor[w], x.x, sum.x);
      sum.y = fused(factor[w], x.y, sum.y);
      sum.z = fused(factor[w], x.z, sum.z);
      sum.w = fused(factor[w], x.w, sum.w);
    }
    *reinterpret_cast<float4*>(partials.o + at * view.d_v + e) =
        make_float4(sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse);
  }
}

template <class T, int D>
__global__ void __launch_bounds__(DecodeTeam::size, D <= 128 ? 3 : 1)
    decode_kernel(const __grid_constant__ TileProblem problem, const DecodeGrid grid, const SplitPlan plan,
                  const Partials partials) {
  using Tile = WarpTile<T, D, 1, decode_block_k>;
  extern __shared__ char shared[];
  DecodeMemory<D>& memory = *reinterpret_cast<DecodeMemory<D>*>(shared);
  const ForwardView& view = problem.view;

  const unsigned splits = static_cast<unsigned>(partials.splits), split = blockIdx.x % splits;
  const unsigned tiles_before = blockIdx.x / splits, row_tile = tiles_before % grid.row_tiles;
  const unsigned head = tiles_before / grid.row_tiles, b = head / grid.kv_heads, kv_head = head % grid.kv_heads;
  const unsigned first_row = row_tile * static_cast<unsigned>(problem.block_q);
  const TileRows<true> tile{b,
                            kv_head * grid.group,
                            first_row / grid.group,
                            first_row % grid.group,
                            grid.group,
                            static_cast<int>(smaller(problem.block_q, grid.packed_rows - first_row))};

  wait_for_previous_kernel();
  let_next_kernel_start();
  const Visibility see = view.visibility(b);
  const IndexRange visited = visited_range(see, tile.queries(), plan.keys(split));
  const Index tiles = block_count(visited, problem.block_k);
  const Index full = full_tiles(see, tile.queries(), visited, problem.block_k);
  const bool tensor_masked = view.tensor_masked();
  const int w = static_cast<int>(threadIdx.x) / 32;
  const Index mine = tiles > w ? (tiles - w - 1) / decode_warps + 1 : 0;  // tiles w, w + 4, ...

  const T* const k = view.k.row<const T>(b, kv_head, 0);
  const T* const v = view.v.row<const T>(b, kv_head, 0);
  const std::uint32_t ring = shared_address(memory.slot[w]);
  std::uint8_t* const codes = memory.codes[w];
  const auto keys_of = [&](Index nth) { return block_range(visited, problem.block_k, w + decode_warps * nth); };
  const auto slot = [&](Index piece) {
    return ring + static_cast<std::uint32_t>(piece % decode_slots) * TileLayout<D>::bytes(decode_block_k);
  };
  // Piece 2n is K of the warp's n-th tile, piece 2n + 1 its V. One group of copies to a piece, also beyond the last.
  const auto load = [&](Index piece) {
    if (piece < 2 * mine) {
      const IndexRange keys = keys_of(piece / 2);
      const bool values = piece % 2 != 0;
      const Index stride = values ? view.v.stride[2] : view.k.stride[2];
      load_tile<T, D, decode_block_k, WarpTeam>(slot(piece), (values ? v : k) + keys.begin * stride, stride,
                                                static_cast<int>(keys.size()),
                                                values ? problem.v_format : problem.k_format);
    }
    commit_copies();
  };

  if (tiles > 0)
    gather_tile<T, D, decode_rows, DecodeTeam>(shared_address(memory.q), tile.count, problem.q_format, [&](int row) {
      return view.q.row<const T>(b, tile.head(row), tile.query_of(row));
    });
  commit_copies();
  for (int piece = 0; piece < decode_slots - 1; ++piece) load(piece);
  wait_for_copies<decode_slots - 1>();
  __syncthreads();  // Q is there

  const float c2 = view.scale * log2_e;
  Tile warp;
  warp.clear();
  for (Index nth = 0; nth < mine; ++nth) {
    const IndexRange keys = keys_of(nth);
    load(2 * nth + decode_slots - 1);
    if (tensor_masked) stage_mask<decode_block_k, WarpTeam>(codes, decode_rows, view, tile, see, keys);
    wait_for_copies<decode_slots - 1>();
    __syncwarp();  // K is there
    typename Tile::Scores x;
    Tile::scores(x, shared_address(memory.q), slot(2 * nth));
    if (tensor_masked) {
      Tile::hide_by_codes(x, codes);
    } else if (w + decode_warps * nth >= full || keys.size() < decode_block_k) {
      int limit[1][2];
      for (int half = 0; half < 2; ++half) limit[0][half] = tile.visible_keys(see, Tile::row(0, half), keys);
      Tile::hide_beyond(x, limit);
    }
    warp.weigh(x, c2);

    __syncwarp();  // K is done with
    load(2 * nth + decode_slots);
    wait_for_copies<decode_slots - 1>();
    __syncwarp();  // V is there
    if (tensor_masked) {
      clear_unseen_values<decode_block_k, TileLayout<D>, WarpTeam>(slot(2 * nth + 1), codes, decode_rows);
      __syncwarp();
    }
    warp.accumulate(x, slot(2 * nth + 1));
    __syncwarp();  // V and the codes are done with
  }

  wait_for_copies<0>();
  __syncthreads();  // every ring is done with
  publish<D>(memory.state[w], warp);
  __syncthreads();
  merge_and_store(memory, problem, tile, partials, split);
}

}  // namespace attn
