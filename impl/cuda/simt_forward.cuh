// The fp32 kernel of FlashAttention-2 and of the first half of Flash-Decoding: one block for a block of packed rows and
// one part of the keys. K of the next tile is fetched during P.V, V during the scores.
#pragma once

#include "impl/cuda/combine.cuh"
#include "impl/cuda/simt_launch.h"
#include "impl/cuda/tile_rows.cuh"

namespace attn {

// Keys from a row's limit on are hidden; then those that the tensor masks hide, if there are any. Their scores become
// -inf and their bits (keys_each i + j) are returned. The bits are found row by row in a rolled loop: its 64-bit
// offsets would else take the registers of the fragments.
template <int Rows, int D>
__device__ unsigned hide_keys(typename SimtTile<Rows, D>::Scores& s, const ForwardView& view,
                              const TileRows<true>& tile, const Visibility& see, IndexRange keys) {
  using Tile = SimtTile<Rows, D>;
  constexpr int each = Tile::keys_each;
  const bool tensor_masked = view.tensor_masked();
  unsigned hidden = 0, invalid = 0;
#pragma unroll 1
  for (int i = 0; i < Rows; ++i) {
    const int row = Tile::row(i), limit = tile.visible_keys(see, row, keys);
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const int key = Tile::lane() + 16 * j;
      float mask = key < limit ? 0.0f : neg_infinity<float>;
      if (tensor_masked && key < limit)
        mask = view.masked(0.0f, tile.batch, tile.head(row), tile.query_of(row), keys.begin + key);
      hidden |= (mask == neg_infinity<float> ? 1u : 0u) << (each * i + j);
      invalid |= (mask != mask ? 1u : 0u) << (each * i + j);
    }
  }
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j) {
      if (hidden >> (each * i + j) & 1u) s[i][j] = neg_infinity<float>;
      if (invalid >> (each * i + j) & 1u) s[i][j] = __int_as_float(0x7fffffff);
    }
  return hidden;
}

// Four neighbouring values of O or of a partial.
__device__ __forceinline__ void store_four(float* to, Index element, bool by_fours, const float (&x)[4], float factor) {
  if (by_fours) {
    *reinterpret_cast<float4*>(to) = make_float4(x[0] * factor, x[1] * factor, x[2] * factor, x[3] * factor);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) to[e * element] = x[e] * factor;
}

// O (acc / l, or acc where it is normalised already) and LSE = scale m + log l. No key seen: O = 0, LSE = -inf. Into
// the split's partials where there are any.
template <SimtRescale rescale, int Rows, int D>
__device__ void store_rows(const SimtProblem& problem, const TileRows<true>& tile, const Partials& partials,
                           Index split, const SimtTile<Rows, D>& mine) {
  using Tile = SimtTile<Rows, D>;
  const ForwardView& view = problem.view;
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
    constexpr bool divides = rescale == SimtRescale::deferred;
    const float m = mine.m[i], l = divides ? reduce_lanes<16>(mine.l[i], SumOf{}) : mine.l[i];
    const int row = Tile::row(i);
    if (row >= tile.count) continue;
    const bool empty = is_empty(m);
    const float inverse = empty ? 0.0f : divides ? reciprocal(l) : 1.0f, lse = row_lse(view.scale, m, l);
    const Index b = tile.batch, h = tile.head(row), q = tile.query_of(row);
    const Index at = ((b * view.q_heads + h) * view.tq + q) * partials.splits + split;
    float* const o = partials.o ? partials.o + at * view.d_v : view.o.row<float>(b, h, q);
    const Index element = partials.o ? 1 : view.o.stride[3];
    const bool by_fours = partials.o || problem.o_by_fours;
    if (Tile::lane() == 0) {
      if (partials.o) {
        partials.lse[at] = lse;
      } else {
        store_lse(view, b, h, q, lse);
      }
    }
#pragma unroll
    for (int c = 0; c < Tile::wide; ++c) {
      const int e = 64 * c + 4 * Tile::lane();
      if (e < view.d_v) store_four(o + e * element, element, by_fours, mine.acc[c][i], inverse);
    }
  }
}

// partials.o null: one part of the keys, and the result is final. last_first: the longest rows of a causal mask go
// first.
template <int Rows, int D>
__global__ void __launch_bounds__(simt_threads, D <= 64 ? 2 : 1)
    simt_forward_kernel(const __grid_constant__ SimtProblem problem, const SplitPlan plan, const Partials partials,
                        const bool last_first) {
  using Tile = SimtTile<Rows, D>;
  using Memory = SimtMemory<Rows, D>;
  extern __shared__ __align__(16) char shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);
  const ForwardView& view = problem.view;

  const Index splits = partials.o ? partials.splits : 1, blocks = problem.query_blocks();
  const Index split = blockIdx.x % splits, rest = blockIdx.x / splits, nth = rest % blocks, head = rest / blocks;
  const IndexRange rows = block_range({0, problem.packed_rows()}, problem.block_q, last_first ? blocks - 1 - nth : nth);
  const Index heads = view.q_heads / problem.group, b = head / heads, first_head = head % heads * problem.group;
  const TileRows<true> tile{b,
                            first_head,
                            rows.begin / problem.group,
                            static_cast<std::uint32_t>(rows.begin % problem.group),
                            static_cast<std::uint32_t>(problem.group),
                            static_cast<int>(rows.size())};
  const Visibility see = view.visibility(b);
  const IndexRange visited = visited_range(see, tile.queries(), partials.o ? plan.keys(split) : IndexRange{0, view.tk});
  const Index tiles = block_count(visited, problem.block_k);

  const float* const k = view.k.row<const float>(b, view.kv_head(first_head), 0);
  const float* const v = view.v.row<const float>(b, view.kv_head(first_head), 0);
  const auto tile_keys = [&](Index t) { return block_range(visited, problem.block_k, t); };
  const auto load_keys = [&](IndexRange keys) {
    copy_even_rows<simt_threads, simt_block_k, D, Memory::stride>(
        memory.k, static_cast<int>(keys.size()), static_cast<int>(view.d_qk), problem.k_by_fours, view.k.stride[3],
        k + keys.begin * view.k.stride[2], view.k.stride[2]);
    commit_copies();
  };
  const auto load_values = [&](IndexRange keys) {
    copy_even_rows<simt_threads, simt_block_k, D, D>(memory.v, static_cast<int>(keys.size()),
                                                     static_cast<int>(view.d_v), problem.v_by_fours, view.v.stride[3],
                                                     v + keys.begin * view.v.stride[2], view.v.stride[2]);
    commit_copies();
  };

  const float c2 = view.scale * simt_log2_e;
  const bool works = Tile::warp_row() < tile.count;
  Tile mine;
  mine.clear();
  if (tiles > 0) {
    copy_rows<simt_threads, Memory::block_q, D, Memory::stride>(
        memory.q, tile.count, static_cast<int>(view.d_qk), problem.q_by_fours, view.q.stride[3],
        [&](int row) { return view.q.row<const float>(b, tile.head(row), tile.query_of(row)); });
    load_keys(tile_keys(0));
  }
  for (Index t = 0; t < tiles; ++t) {
    const IndexRange keys = tile_keys(t);
    const bool partial = view.tensor_masked() || classify(see, tile.queries(), keys) == TileClass::partial;
    wait_for_copies<0>();
    __syncthreads();  // K is there, and V of the tile before is done with
    load_values(keys);
    if (works) {
      typename Tile::Scores s;
      float unused[Rows];
      Tile::scores(s, memory, static_cast<int>(view.d_qk));
      if (partial || keys.size() < simt_block_k) {
        const unsigned hidden = hide_keys<Rows, D>(s, view, tile, see, keys);
        mine.template weigh<true, SimtRescale::deferred>(s, hidden, memory, c2, unused);
      } else {
        mine.template weigh<false, SimtRescale::deferred>(s, 0, memory, c2, unused);
      }
    }
    wait_for_copies<0>();
    __syncthreads();  // V is there, and K is done with
    if (t + 1 < tiles) load_keys(tile_keys(t + 1));
    if (works) {
      if (partial) {
        mine.template accumulate<true>(memory);
      } else {
        mine.template accumulate<false>(memory);
      }
    }
  }
  store_rows<SimtRescale::deferred>(problem, tile, partials, split, mine);
}

}  // namespace attn
