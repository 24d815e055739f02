// The first half of Flash-Decoding: partial results of tiles of packed rows over splits of the keys.
//
// The heads that read one kv head are packed into the rows of a tile, so that every key is fetched once for all of
// them. The four warps of a block hold the same 16 rows; key tiles of a split go to them in turn, each warp keeps its
// own state and its own ring of slots in shared memory, and nobody waits for anybody until the end of the split, where
// the four states are merged. What counts here is bytes in flight: there are as many blocks as the device holds, each
// takes items of work one after the other, and the rings run ahead into the next item while the states of this one are
// merged. Which block takes an item changes no bit.
#pragma once

#include "impl/cuda/combine.cuh"
#include "impl/cuda/decode_item.cuh"
#include "impl/cuda/tile_warp.cuh"

namespace attn {

inline constexpr int decode_rows = 16;
inline constexpr int decode_block_k = 32;
inline constexpr int decode_merged_rows = 4;  // at a time; a group of four heads with one query is merged at once

struct DecodeTeam : BlockTeam {
  static constexpr int size = 32 * decode_warps;
};

// Slots: of a warp's ring; each holds a tile of K or one of V.
template <int D, int Slots>
struct DecodeMemory {
  using Layout = TileLayout<D>;
  struct State {
    float acc[decode_merged_rows][D];
    float m[decode_merged_rows], l[decode_merged_rows];
  };
  alignas(1024) char q[2][Layout::bytes(decode_rows)];  // of this item and of the next
  alignas(1024) char slot[decode_warps][Slots][Layout::bytes(decode_block_k)];
  union {
    State state;                                       // after the item's last tile
    std::uint8_t codes[decode_rows * decode_block_k];  // before it, under tensor masks
  } warp[decode_warps];
};

// Keys and values on their way into a warp's ring, tile after tile, item after item. Piece 2n is K of the warp's n-th
// tile of an item, piece 2n + 1 its V.
template <class T, int D, int Slots>
class DecodeRing {
 public:
  __device__ DecodeRing(const TileProblem& problem, const DecodeGrid& grid, std::uint32_t slots, int w)
      : problem_(problem), grid_(grid), slots_(slots), w_(w), index_(blockIdx.x), item_(problem, grid, blockIdx.x, w) {
    // Keys and values are read once where one tile holds all rows, and need no place in the L2 cache then.
    policy_ = grid.row_tiles == 1 ? policy_evict_first() : policy_evict_normal();
  }

  // The item that pieces come from.
  __device__ const DecodeItem& item() const { return item_; }

  // Starts the next piece. One group of copies to a call, also beyond the last piece.
  __device__ __forceinline__ void load_next() {
    while (index_ < grid_.items && piece_ == 2 * item_.tiles) {
      index_ += gridDim.x;
      piece_ = 0;
      if (index_ < grid_.items) item_ = DecodeItem(problem_, grid_, index_, w_);
    }
    if (index_ < grid_.items) {
      const IndexRange keys = item_.keys(problem_, piece_ / 2, w_);
      const bool values = piece_ % 2 != 0;
      const View& from = values ? problem_.view.v : problem_.view.k;
      load_tile<T, D, decode_block_k, WarpTeam>(
          slots_ + head_, from.row<const T>(item_.tile.batch, item_.kv_head, keys.begin), from.stride[2],
          static_cast<int>(keys.size()), values ? problem_.v_format : problem_.k_format, policy_);
      ++piece_;
    }
    commit_copies();
    head_ = after(head_);
  }

  // The slot of the oldest piece, which the next load_next but Slots - 1 writes over.
  __device__ __forceinline__ std::uint32_t take() {
    const std::uint32_t slot = slots_ + tail_;
    tail_ = after(tail_);
    return slot;
  }

 private:
  static constexpr std::uint32_t slot_bytes = TileLayout<D>::bytes(decode_block_k);
  __device__ static std::uint32_t after(std::uint32_t at) {
    return at + slot_bytes == Slots * slot_bytes ? 0 : at + slot_bytes;
  }

  const TileProblem& problem_;
  const DecodeGrid& grid_;
  std::uint32_t slots_, head_ = 0, tail_ = 0;
  int w_;
  unsigned index_;
  DecodeItem item_;
  Index piece_ = 0;
  std::uint64_t policy_;
};

// Rows 4 pass .. 4 pass + 3 of what a warp has are put where the others can read them. l: sums of whole rows.
template <int D, class State, class Tile>
__device__ void publish(State& state, const Tile& warp, const float (&l)[2], int pass) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = Tile::row(0, half) - decode_merged_rows * pass;
    if (row < 0 || row >= decode_merged_rows) continue;
    if (Tile::column() == 0) {
      state.m[row] = warp.m[0][half];
      state.l[row] = l[half];
    }
#pragma unroll
    for (int t = 0; t < D / 8; ++t)
      *reinterpret_cast<float2*>(&state.acc[row][8 * t + Tile::column()]) =
          make_float2(warp.acc[0][t][2 * half], warp.acc[0][t][2 * half + 1]);
  }
}

// The states of the warps merged in order, normalised and written as partials of the item's split.
template <class Memory>
__device__ void merge_and_store(const Memory& memory, const TileProblem& problem, const DecodeItem& item,
                                const Partials& partials, int pass) {
  const ForwardView& view = problem.view;
  const TileRows<true>& tile = item.tile;
  constexpr int to_a_row = DecodeTeam::size / decode_merged_rows;
  const int place = static_cast<int>(threadIdx.x) % to_a_row, at_row = static_cast<int>(threadIdx.x) / to_a_row;
  const int row = decode_merged_rows * pass + at_row;
  if (row >= tile.count) return;
  const float c2 = view.scale * log2_e;
  float m = neg_infinity<float>, l = 0.0f, factor[decode_warps];
#pragma unroll
  for (int w = 0; w < decode_warps; ++w) m = max_nan(m, memory.warp[w].state.m[at_row]);
#pragma unroll
  for (int w = 0; w < decode_warps; ++w) {
    factor[w] = moved_max_factor(memory.warp[w].state.m[at_row], m, c2);
    l = fused(factor[w], memory.warp[w].state.l[at_row], l);
  }
  const Index at =
      ((tile.batch * view.q_heads + tile.head(row)) * view.tq + tile.query_of(row)) * partials.splits + item.split;
  if (place == 0) partials.lse[at] = row_lse(view.scale, m, l);
  if (is_empty(m)) return;
  const float inverse = reciprocal(l);
  for (int e = 4 * place; e < view.d_v; e += 4 * to_a_row) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < decode_warps; ++w) {
      const float4 x = *reinterpret_cast<const float4*>(&memory.warp[w].state.acc[at_row][e]);
      sum.x = fused(factor[w], x.x, sum.x);
      sum.y = fused(factor[w], x.y, sum.y);
      sum.z = fused(factor[w], x.z, sum.z);
      sum.w = fused(factor[w], x.w, sum.w);
    }
    *reinterpret_cast<float4*>(partials.o + at * view.d_v + e) =
        make_float4(sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse);
  }
}

template <class T, int D, int Slots>
__global__ void __launch_bounds__(DecodeTeam::size, D <= 64    ? 3
                                                    : D <= 128 ? 2
                                                               : 1)
    decode_kernel(const __grid_constant__ TileProblem problem, const __grid_constant__ DecodeGrid grid,
                  const Partials partials) {
  using Tile = WarpTile<T, D, 1, decode_block_k>;
  extern __shared__ char shared[];
  DecodeMemory<D, Slots>& memory = *reinterpret_cast<DecodeMemory<D, Slots>*>(shared);
  const ForwardView& view = problem.view;
  const bool tensor_masked = view.tensor_masked();
  const float c2 = view.scale * log2_e;
  const int w = static_cast<int>(threadIdx.x) / 32;
  std::uint8_t* const codes = memory.warp[w].codes;
  const auto load_q = [&](const TileRows<true>& tile, int buffer) {
    gather_tile<T, D, decode_rows, DecodeTeam>(
        shared_address(memory.q[buffer]), tile.count, problem.q_format,
        [&](int row) { return view.q.row<const T>(tile.batch, tile.head(row), tile.query_of(row)); });
    commit_copies();
  };

  wait_for_previous_kernel();
  let_next_kernel_start();
  DecodeRing<T, D, Slots> ring(problem, grid, shared_address(memory.slot[w]), w);
  load_q(ring.item().tile, 0);
  for (int i = 0; i < Slots - 1; ++i) ring.load_next();

  bool pieces_since_q = true;  // at least Slots - 1
  int buffer = 0;
  for (unsigned index = blockIdx.x; index < grid.items; index += gridDim.x, buffer ^= 1) {
    const DecodeItem item(problem, grid, index, w);
    const Index full = full_tiles(item.see, item.tile.queries(), item.visited, problem.block_k);
    if (pieces_since_q)
      wait_for_copies<Slots - 1>();
    else
      wait_for_copies<0>();
    __syncthreads();  // Q is there; Q and the states of the item before are done with
    if (index + gridDim.x < grid.items) load_q(DecodeItem(problem, grid, index + gridDim.x, w).tile, buffer ^ 1);
    pieces_since_q = 2 * item.tiles >= Slots - 1;

    Tile warp;
    warp.clear();
    for (Index nth = 0; nth < item.tiles; ++nth) {
      const IndexRange keys = item.keys(problem, nth, w);
      ring.load_next();
      if (tensor_masked) stage_mask<decode_block_k, WarpTeam>(codes, decode_rows, view, item.tile, item.see, keys);
      wait_for_copies<Slots - 1>();
      __syncwarp();  // K is there
      typename Tile::Scores x;
      Tile::scores(x, shared_address(memory.q[buffer]), ring.take());
      if (tensor_masked) {
        Tile::hide_by_codes(x, codes);
      } else if (w + decode_warps * nth >= full || keys.size() < decode_block_k) {
        int limit[1][2];
        for (int half = 0; half < 2; ++half)
          limit[0][half] = item.tile.visible_keys(item.see, Tile::row(0, half), keys);
        Tile::hide_beyond(x, limit);
      }
      warp.weigh(x, c2);

      __syncwarp();  // K is done with
      ring.load_next();
      wait_for_copies<Slots - 1>();
      __syncwarp();  // V is there
      const std::uint32_t v = ring.take();
      if (tensor_masked) {
        clear_unseen_values<decode_block_k, TileLayout<D>, WarpTeam>(v, codes, decode_rows);
        __syncwarp();
      }
      warp.accumulate(x, v);
      __syncwarp();  // V and the codes are done with
    }

    const float l[2] = {quad_sum(warp.l[0][0]), quad_sum(warp.l[0][1])};
    for (int pass = 0; decode_merged_rows * pass < item.tile.count; ++pass) {
      if (pass > 0) __syncthreads();  // the rows before are done with
      publish<D>(memory.warp[w].state, warp, l, pass);
      __syncthreads();
      merge_and_store(memory, problem, item, partials, pass);
    }
  }
  wait_for_copies<0>();
}

}  // namespace attn
