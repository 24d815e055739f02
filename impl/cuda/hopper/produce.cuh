// The loading warp: walks the same blocks and tiles as the computing warpgroups, and keeps the rings of buffers full.
#pragma once

#include "impl/cuda/hopper/tensor_mask.cuh"

namespace attn::hopper {

// One box of every panel: `rows` from `row` on. Announce the bytes first.
template <class B>
__device__ __forceinline__ void load(B& buffer, const TensorMap& from, Barrier& done, int batch, int head, int row) {
  constexpr int panels = sizeof(buffer.panel) / sizeof(buffer.panel[0]);
#pragma unroll
  for (int p = 0; p < panels; ++p)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6}], "
        "[%2];" ::"r"(shared_address(buffer.panel[p])),
        "l"(&from.map), "r"(shared_address(&done)), "r"(p * panel_columns), "r"(row), "r"(head * from.head_step),
        "r"(batch * from.batch_step)
        : "memory");
}

// Rows [begin, end) of a tile become zero. A row is 128 bytes in every panel, however swizzled.
template <class T, int Rows, int Panels>
__device__ void clear_rows(Buffer<T, Rows, Panels>& buffer, int begin, int end) {
  constexpr int words = panel_columns * static_cast<int>(sizeof(T)) / 16;
  for (int p = 0; p < Panels; ++p)
    for (int i = begin * words + static_cast<int>(threadIdx.x % warp_size); i < end * words; i += warp_size)
      reinterpret_cast<uint4*>(buffer.panel[p])[i] = make_uint4(0, 0, 0, 0);
}

template <class T, class Tile, bool TensorMask>
struct Producer {
  using Buffers = Shared<T, Tile>;
  const Parameters& a;
  Buffers& shared;
  RingPosition<Tile::stages> at;
  RingPosition<Tile::q_stages> q_at[Tile::groups];
  std::uint32_t scratch_parity = 0;
  const bool leader = threadIdx.x % warp_size == 0;

  // Each warpgroup has its own rows of q: the next ones arrive while others still work on their last.
  __device__ void load_q(const Plan<Tile::groups>& plan) {
#pragma unroll
    for (int g = 0; g < Tile::groups; ++g) {
      if (plan.mine[g].visited == 0) continue;
      if (leader) {
        const int stage = q_at[g].stage();
        shared.q_free[g][stage].wait(q_at[g].parity() ^ 1);
        shared.q_full[g][stage].arrive_expecting(Buffers::Q::bytes);
        load(shared.q[g][stage], a.q, shared.q_full[g][stage], plan.batch, plan.head, plan.first_row + g * group_rows);
      }
      ++q_at[g].count;
    }
  }
  __device__ __forceinline__ void load_k(int batch, int head, int n) {
    if (!leader) return;
    shared.k_free[at.stage()].wait(at.parity() ^ 1);
    shared.k_full[at.stage()].arrive_expecting(Buffers::KV::bytes);
    load(shared.k[at.stage()], a.k, shared.k_full[at.stage()], batch, head, n * Tile::block_k);
  }
  __device__ __forceinline__ void load_v(int batch, int head, int n) {
    if (!leader) return;
    shared.v_free[at.stage()].wait(at.parity() ^ 1);
    shared.v_full[at.stage()].arrive_expecting(Buffers::KV::bytes);
    load(shared.v[at.stage()], a.v, shared.v_full[at.stage()], batch, head, n * Tile::block_k);
  }

  // Values at keys that no row sees may be NaN, and a weight of 0 would not keep them out: clean(tile) clears them
  // before the tile is handed on.
  template <class Clean>
  __device__ void load_clean_v(int batch, int head, int n, Clean clean) {
    shared.v_free[at.stage()].wait(at.parity() ^ 1);
    if (leader) {
      shared.scratch.arrive_expecting(Buffers::KV::bytes);
      load(shared.v[at.stage()], a.v, shared.scratch, batch, head, n * Tile::block_k);
    }
    shared.scratch.wait(scratch_parity);
    scratch_parity ^= 1;
    clean(shared.v[at.stage()]);
    publish_shared_stores();
    __syncwarp();
    if (leader) shared.v_full[at.stage()].arrive();
  }

  __device__ __forceinline__ void want_plan() {
    if (leader) shared.plan_wanted.arrive();
  }

  // One query block's tiles, the last first.
  __device__ void load_tiles(const Plan<Tile::groups>& plan) {
    constexpr int notice = 2;  // tiles to go when the next plan is asked for: a plan takes about one
    const int batch = plan.batch, head = plan.kv_head, end = plan.head_end;
    int n = plan.tiles - 1;
    if (TensorMask || n <= notice) want_plan();
    load_k(batch, head, n);
    load_q(plan);
    if constexpr (TensorMask) {
      const IndexRange rows = cut_rows(plan.first_row, Tile::block_q, a.problem.tq);
      const Visibility see{a.problem.tq, a.problem.tk, plan.kv_len, a.problem.causal};
      for (bool first = true; n >= 0; --n, first = false) {
        if (!first) load_k(batch, head, n);
        load_clean_v(batch, head, n, [&](typename Buffers::KV& v) {
          clear_unseen(v, a.problem, see, batch, plan.head, rows, n * Tile::block_k);
        });
        ++at.count;
      }
    } else {
      // Beyond Tk the copy engine fills in zeros; a visible end before that (a key length, a top-left causal mask)
      // falls into the first tile here or into none.
      if (end < smaller(Index{n + 1} * Tile::block_k, a.problem.tk))
        load_clean_v(batch, head, n,
                     [&](typename Buffers::KV& v) { clear_rows(v, end - n * Tile::block_k, Tile::block_k); });
      else
        load_v(batch, head, n);
      ++at.count;
#pragma unroll 1
      for (--n; n >= 0; --n) {
        if (n == notice) want_plan();
        load_k(batch, head, n);
        load_v(batch, head, n);
        ++at.count;
      }
    }
  }

  __device__ void run() {
    for (RingPosition<Buffers::plans> plan_at;; ++plan_at.count) {
      const int slot = plan_at.stage();
      shared.plan_full[slot].wait(plan_at.parity());
      const Plan<Tile::groups>& plan = shared.plan[slot];
      if (plan.tiles < 0) return;
      if (plan.tiles > 0)
        load_tiles(plan);
      else
        want_plan();
      __syncwarp();
      if (leader) shared.plan_free[slot].arrive();
    }
  }
};

}  // namespace attn::hopper
