// One thread that plans query blocks ahead of the others, so that no load and no product waits for index arithmetic.
#pragma once

#include "impl/cuda/hopper/block.cuh"

namespace attn::hopper {

template <class T, class Tile>
struct Planner {
  using Buffers = Shared<T, Tile>;
  const Parameters& a;
  Buffers& shared;

  // The query block after this one. Equal blocks are dealt out in turn; unequal ones go to whoever is free.
  __device__ std::uint32_t next_block(std::uint32_t index) const {
    return gridDim.x + (a.counter ? atomicAdd(a.counter, 1) : index);
  }

  __device__ void plan_block(const BlockOrder::Place& place, Plan<Tile::groups>& plan) const {
    const Visibility see = a.problem.visibility(place.batch);
    const Index first = static_cast<Index>(place.block) * Tile::block_q, tq = a.problem.tq;
    plan.batch = place.batch;
    plan.head = place.head;
    plan.kv_head = static_cast<int>(a.problem.kv_head(place.head));
    plan.first_row = static_cast<int>(first);
    plan.kv_len = static_cast<int>(see.kv_len);
    plan.head_end = static_cast<int>(see.visible_range({0, tq}).end);
    plan.tiles = count_tiles(see, cut_rows(first, Tile::block_q, tq), Tile::block_k).visited;
#pragma unroll
    for (int g = 0; g < Tile::groups; ++g)
      plan.mine[g] = count_tiles(see, cut_rows(first + g * group_rows, group_rows, tq), Tile::block_k);
  }

  __device__ void run() {
    std::uint32_t index = blockIdx.x;
    for (RingPosition<Buffers::plans> at;; ++at.count) {
      Plan<Tile::groups>& plan = shared.plan[at.stage()];
      shared.plan_free[at.stage()].wait(at.parity() ^ 1);
      const bool more = index < a.order.total();
      if (more)
        plan_block(a.order.place(index), plan);
      else
        plan = {.tiles = -1};
      shared.plan_full[at.stage()].arrive();
      if (!more) return;
      // Not sooner: a block that is taken early is one that nobody else can take who is free by then.
      shared.plan_wanted.wait(at.count % 2);
      index = next_block(index);
    }
  }
};

}  // namespace attn::hopper
