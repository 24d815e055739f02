// A computing warpgroup: 64 query rows against tile after tile, from the last visible tile down to the first.
//
// Within a warpgroup the scores of tile n are formed by the tensor cores together with the values' product of the tile
// before, while the softmax runs on what came earlier (Shah et al., FlashAttention-3, arXiv 2407.08608, section 3.2);
// between warpgroups turns are taken, so that one's products run under the other's exponentials (section 3.1).
// From the last tile down: partial tiles come first, and rows that see nothing of a tile are still empty then.
#pragma once

#include "impl/cuda/hopper/block.cuh"
#include "impl/cuda/hopper/epilogue.cuh"
#include "impl/cuda/hopper/tensor_mask.cuh"

namespace attn::hopper {

template <class T, class Tile, bool TensorMask>
struct Consumer {
  static constexpr int score_count = Tile::block_k / 2, value_count = Tile::dim / 2;
  static constexpr int k_step = 16;  // of a matrix instruction
  using Buffers = Shared<T, Tile>;

  const Parameters& a;
  Buffers& shared;
  const int group;
  const float c2;
  RingPosition<Tile::stages> k_at, v_at;
  std::uint32_t q_parity = 0, round = 0;

  // What to do in this round. Read anew where it is needed: registers are dear.
  __device__ __forceinline__ const Plan<Tile::groups>& plan() const { return shared.plan[round % Buffers::plans]; }
  // The first of the thread's two rows; the other is 8 further down.
  __device__ __forceinline__ int first_row() const {
    const int thread = static_cast<int>(threadIdx.x % group_size);
    return plan().first_row + group * group_rows + thread / warp_size * 16 + thread % warp_size / 4;
  }

  // Turns: a group issues its products when it has been passed the turn.
  __device__ __forceinline__ void await_turn() {
    if constexpr (Tile::in_turns) named_sync(1 + group, 2 * group_size);
  }
  __device__ __forceinline__ void pass_turn() {
    if constexpr (Tile::in_turns) named_arrive(1 + (group + 1) % Tile::groups, 2 * group_size);
  }
  __device__ __forceinline__ void release(Barrier& barrier) {
    if (threadIdx.x % warp_size == 0) barrier.arrive();
  }

  __device__ __forceinline__ void issue_scores(float (&x)[score_count]) {
    const Descriptor q(shared_address(&shared.q[group]), 16), k(shared_address(&shared.k[k_at.stage()]), 16);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Tile::dim / k_step; ++i) {
      constexpr int steps = panel_columns / k_step;
      const int inside = i % steps * k_step * 2, panel = i / steps;  // bytes along a row; panel
      Product<T, Tile::block_k>::shared(x, q.at(panel * Buffers::Q::panel_bytes + inside),
                                        k.at(panel * Buffers::KV::panel_bytes + inside), i != 0);
    }
    wgmma_commit();
  }

  __device__ __forceinline__ void issue_values(float (&acc)[value_count],
                                               const std::uint32_t (&weights)[score_count / 2]) {
    const Descriptor v(shared_address(&shared.v[v_at.stage()]), Buffers::KV::panel_bytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Tile::block_k / k_step; ++i)
      Product<T, Tile::dim>::registers(acc, weights + 4 * i, v.at(i * k_step * panel_columns * 2), 1);
    wgmma_commit();
  }

  __device__ __forceinline__ void round_weights(const float (&x)[score_count],
                                                std::uint32_t (&weights)[score_count / 2]) {
#pragma unroll
    for (int i = 0; i < score_count / 2; ++i) weights[i] = pack<T>(x[2 * i], x[2 * i + 1]);
  }

  // One past the last key that each of the thread's two rows sees by position.
  using Ends = int[2];
  __device__ __forceinline__ void mask(float (&x)[score_count], const Ends& end, int n) {
    if constexpr (TensorMask) {
      mask_by_tensor(x, a.problem, plan().batch, plan().head, first_row(), n * Tile::block_k, end);
    } else {
      const int limit[2] = {end[0] - n * Tile::block_k, end[1] - n * Tile::block_k};
      mask_tail(x, limit);
    }
  }

  // A tile of which this group sees nothing: another group needs it.
  __device__ __forceinline__ void pass_over() {
    await_turn();
    pass_turn();
    shared.k_full[k_at.stage()].wait(k_at.parity());
    release(shared.k_free[k_at.stage()]);
    ++k_at.count;
    shared.v_full[v_at.stage()].wait(v_at.parity());
    release(shared.v_free[v_at.stage()]);
    ++v_at.count;
  }

  // The scores of tile n, the product of the tile before it, the softmax of tile n.
  template <bool Masked>
  __device__ __forceinline__ void advance(int n, const Ends& end, RowPair& state, float (&x)[score_count],
                                          std::uint32_t (&weights)[score_count / 2], float (&acc)[value_count]) {
    shared.k_full[k_at.stage()].wait(k_at.parity());
    await_turn();
    issue_scores(x);
    issue_values(acc, weights);
    pass_turn();
    const int k_used = k_at.stage(), v_used = v_at.stage();
    ++k_at.count;
    ++v_at.count;
    if constexpr (Tile::overlaps) {
      wgmma_wait<1>();
      pin(x);
      release(shared.k_free[k_used]);
      if constexpr (Masked) mask(x, end, n);
      state.step(x, c2);
      pin(x);
      // The next values are waited for already here: the loop in it keeps the compiler from moving the wait for the
      // product above the exponentials, which are to run under it.
      shared.v_full[v_at.stage()].wait(v_at.parity());
      wgmma_wait<0>();
      pin(acc);
      release(shared.v_free[v_used]);
    } else {
      wgmma_wait<0>();
      pin(x);
      pin(acc);
      release(shared.k_free[k_used]);
      release(shared.v_free[v_used]);
      if constexpr (Masked) mask(x, end, n);
      state.step(x, c2);
      shared.v_full[v_at.stage()].wait(v_at.parity());
    }
    state.rescale(acc);
    round_weights(x, weights);
  }

  // Tiles n = count.visited - 1 .. 0 into state and acc.
  __device__ __forceinline__ void attend(TileCount count, const Ends& end, RowPair& state, float (&acc)[value_count]) {
    float x[score_count];
    std::uint32_t weights[score_count / 2];
    int n = count.visited - 1;
    shared.q_full[group].wait(q_parity);
    shared.k_full[k_at.stage()].wait(k_at.parity());
    await_turn();
    issue_scores(x);
    pass_turn();
    wgmma_wait<0>();
    pin(x);
    release(shared.k_free[k_at.stage()]);
    ++k_at.count;
    if (n >= count.full) mask(x, end, n);
    state.step(x, c2);
    round_weights(x, weights);
    shared.v_full[v_at.stage()].wait(v_at.parity());

#pragma unroll 1
    for (--n; n >= count.full; --n) advance<true>(n, end, state, x, weights, acc);
#pragma unroll 1
    for (; n >= 0; --n) advance<false>(n, end, state, x, weights, acc);
    release(shared.q_free[group]);
    q_parity ^= 1;
    issue_values(acc, weights);
    wgmma_wait<0>();
    pin(acc);
    release(shared.v_free[v_at.stage()]);
    ++v_at.count;
  }

  __device__ void run() {
    if (group == Tile::groups - 1) pass_turn();  // the first group begins
    for (;; ++round) {
      const std::uint32_t slot = round % Buffers::plans;
      shared.plan_full[slot].wait(round / Buffers::plans % 2);
      const int tiles = plan().tiles;
      if (tiles < 0) break;
      const TileCount mine = plan().mine[group];
#pragma unroll 1
      for (int n = tiles; n > mine.visited; --n) pass_over();
      RowPair state;
      float acc[value_count];
#pragma unroll
      for (float& value : acc) value = 0.0f;
      if (mine.visited > 0) {
        const Visibility see{a.problem.tq, a.problem.tk, plan().kv_len, a.problem.causal};
        Ends end;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const Index row = first_row() + 8 * r;
          // A tensor mask has no entries for rows beyond Tq.
          end[r] = !TensorMask || row < a.problem.tq ? static_cast<int>(see.visible_end(row)) : 0;
        }
        attend(TensorMask ? TileCount{mine.visited, 0} : mine, end, state, acc);
      }
      finish<T>(a.problem, state, acc, plan().batch, plan().head, first_row(), a.vector_o);
      __syncwarp();
      release(shared.plan_free[slot]);
    }
    if (group == 0) await_turn();  // the turn that nobody takes
  }
};

}  // namespace attn::hopper
