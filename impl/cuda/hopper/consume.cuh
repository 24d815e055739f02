// A computing warpgroup: 64 query rows against tile after tile, from the last visible tile down to the first.
//
// The scores of a tile are formed by the tensor cores together with the product of the weights and values of the tile
// before it, and the softmax of the tile runs under that product (Shah et al., FlashAttention-3, arXiv 2407.08608,
// section 3.2). That goes on across query blocks: the first scores of one run beside the last product of the block
// before. With `in_turns` warpgroups issue their products one after another, so that one's products run under the
// other's exponentials (section 3.1).
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
  using Scores = float[score_count];
  using Weights = std::uint32_t[score_count / 2];  // two in a word, as an operand of the next product
  using Values = float[value_count];
  using Ends = int[2];  // one past the last key that each of the thread's two rows sees by position

  const Parameters& a;
  Buffers& shared;
  const int thread, group;  // of the warpgroup; of the block
  const float c2;
  RingPosition<Tile::stages> at;      // the next tile of keys and values
  RingPosition<Tile::q_stages> q_at;  // the next block of queries
  std::uint32_t round = 0;            // the query block in hand
  bool busy = false;                  // the weights of the latest tile are pending: its product comes next

  // What to do in a round. Read anew where it is needed: registers are dear.
  __device__ __forceinline__ const Plan<Tile::groups>& plan(std::uint32_t of) const {
    return shared.plan[of % Buffers::plans];
  }
  // The first of the thread's two rows; the other is 8 further down.
  __device__ __forceinline__ int first_row(std::uint32_t of) const {
    return plan(of).first_row + group * group_rows + thread / warp_size * 16 + thread % warp_size / 4;
  }

  // Turns: a group issues its products when it has been passed the turn.
  __device__ __forceinline__ void await_turn() {
    if constexpr (Tile::in_turns) named_sync(1 + group, 2 * group_size);
  }
  __device__ __forceinline__ void pass_turn() {
    if constexpr (Tile::in_turns) named_arrive(1 + (group + 1) % Tile::groups, 2 * group_size);
  }
  __device__ __forceinline__ void release(Barrier& barrier) {
    if (thread % warp_size == 0) barrier.arrive();
  }

  __device__ __forceinline__ void issue_scores(Scores& x) {
    const Descriptor q(shared_address(&shared.q[group][q_at.stage()]), 16),
        k(shared_address(&shared.k[at.stage()]), 16);
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

  __device__ __forceinline__ void issue_values(Values& acc, const Weights& weights, int stage) {
    const Descriptor v(shared_address(&shared.v[stage]), Buffers::KV::panel_bytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Tile::block_k / k_step; ++i)
      Product<T, Tile::dim>::registers(acc, weights + 4 * i, v.at(i * k_step * panel_columns * 2), 1);
    wgmma_commit();
  }

  __device__ __forceinline__ void round_weights(const Scores& x, Weights& weights) {
#pragma unroll
    for (int i = 0; i < score_count / 2; ++i) weights[i] = pack<T>(x[2 * i], x[2 * i + 1]);
  }

  __device__ __forceinline__ void mask(Scores& x, const Ends& end, int n) {
    if constexpr (TensorMask) {
      mask_by_tensor(x, a.problem, plan(round).batch, plan(round).head, first_row(round), n * Tile::block_k, end);
    } else {
      const int limit[2] = {end[0] - n * Tile::block_k, end[1] - n * Tile::block_k};
      mask_tail(x, limit);
    }
  }

  // A tile of which this group sees nothing: another group needs it.
  __device__ __forceinline__ void pass_over() {
    await_turn();
    pass_turn();
    shared.k_full[at.stage()].wait(at.parity());
    release(shared.k_free[at.stage()]);
    shared.v_full[at.stage()].wait(at.parity());
    release(shared.v_free[at.stage()]);
    ++at.count;
  }

  // Done with the scores of the tile that `at` names; its values are wanted next.
  __device__ __forceinline__ void await_values() {
    shared.v_full[at.stage()].wait(at.parity());
    ++at.count;
  }

  // The scores of a tile beside the pending product, then the softmax of the tile; acc is complete at the end. The
  // pending product is that of the tile before, or further back by those passed over.
  template <class Mask>
  __device__ __forceinline__ void advance(Mask mask_scores, RowPair& state, Scores& x, const Weights& weights,
                                          Values& acc, int passed_over = 0) {
    const int used = at.before(1 + passed_over);
    shared.k_full[at.stage()].wait(at.parity());
    await_turn();
    issue_scores(x);
    issue_values(acc, weights, used);
    pass_turn();
    wgmma_wait<1>();
    pin(x);
    release(shared.k_free[at.stage()]);
    mask_scores(x);
    state.step(x, c2);
    pin(x);
    // The next values are waited for already here: the loop in it keeps the compiler from moving the wait for the
    // product above the exponentials, which are to run under it.
    await_values();
    wgmma_wait<0>();
    pin(acc);
    release(shared.v_free[used]);
  }
  // The same where there is no pending product to go beside the scores.
  template <class Mask>
  __device__ __forceinline__ void begin(Mask mask_scores, RowPair& state, Scores& x) {
    shared.k_full[at.stage()].wait(at.parity());
    await_turn();
    issue_scores(x);
    pass_turn();
    wgmma_wait<0>();
    pin(x);
    release(shared.k_free[at.stage()]);
    mask_scores(x);
    state.step(x, c2);
    await_values();
  }
  // A pending product with no scores to go beside it.
  __device__ __forceinline__ void drain(const Weights& weights, Values& acc) {
    const int used = at.before(1);
    issue_values(acc, weights, used);
    wgmma_wait<0>();
    pin(acc);
    release(shared.v_free[used]);
  }

  // Stores the query block before this one, and starts anew.
  __device__ __forceinline__ void finish(const float (&inverse)[2], Values& acc) {
    const std::uint32_t last = round - 1;
    store_rows<T>(a.problem, acc, inverse, plan(last).batch, plan(last).head, first_row(last), a.vector_o);
    __syncwarp();
    release(shared.plan_free[last % Buffers::plans]);
#pragma unroll
    for (int i = 0; i < value_count; ++i) acc[i] = 0.0f;
    busy = false;
  }
  __device__ __forceinline__ void ends(Ends& end) {
    const Visibility see{a.problem.tq, a.problem.tk, plan(round).kv_len, a.problem.causal};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Index row = first_row(round) + 8 * r;
      // A tensor mask has no entries for rows beyond Tq.
      end[r] = !TensorMask || row < a.problem.tq ? static_cast<int>(see.visible_end(row)) : 0;
    }
  }

  __device__ void run() {
    if (group == Tile::groups - 1) pass_turn();  // the first group begins
    Scores x;
    Weights weights;
    Values acc;
#pragma unroll
    for (int i = 0; i < value_count; ++i) acc[i] = 0.0f;
    float inverse[2] = {0.0f, 0.0f};  // of the row sums of what is pending
    for (;; ++round) {
      shared.plan_full[round % Buffers::plans].wait(round / Buffers::plans % 2);
      const int tiles = uniform(plan(round).tiles), visited = uniform(plan(round).mine[group].visited);
      // Tiles passed over must not wait for the stage that the pending product holds.
      const bool alone = !busy || visited == 0 || tiles - visited > Tile::stages - 2;
      if (busy && alone) drain(weights, acc);
#pragma unroll 1
      for (int n = tiles; n > visited; --n) pass_over();
      const int full = TensorMask ? 0 : uniform(plan(round).mine[group].full);
      Ends end;
      ends(end);
      int n = visited - 1;
      RowPair state;
      if (visited > 0) {
        const auto mask_scores = [&](Scores& scores) {
          if (n >= full) mask(scores, end, n);
        };
        shared.q_full[group][q_at.stage()].wait(q_at.parity());
        if (alone)
          begin(mask_scores, state, x);
        else
          advance(mask_scores, state, x, weights, acc, tiles - visited);
      }
      if (busy) finish(inverse, acc);
      if (tiles < 0) break;
      if (visited == 0) {
        store_empty(a.problem, plan(round).batch, plan(round).head, first_row(round));
        __syncwarp();
        release(shared.plan_free[round % Buffers::plans]);
        continue;
      }
      round_weights(x, weights);
      busy = true;
#pragma unroll 1
      for (--n; n >= full; --n) {
        advance([&](Scores& scores) { mask(scores, end, n); }, state, x, weights, acc);
        state.rescale(acc);
        round_weights(x, weights);
      }
#pragma unroll 1
      for (; n >= 0; --n) {
        advance([](Scores&) {}, state, x, weights, acc);
        state.rescale(acc);
        round_weights(x, weights);
      }
      release(shared.q_free[group][q_at.stage()]);
      ++q_at.count;
      state.close(inverse);
      store_lse(a.problem, state, plan(round).batch, plan(round).head, first_row(round));
    }
    if (group == 0) await_turn();  // the turn that nobody takes
  }
};

}  // namespace attn::hopper
