// What a thread block of Flash-Decoding works on at a time: one tile of packed rows and one split of the keys.
#pragma once

#include "impl/core/tile_schedule.h"
#include "impl/cuda/tile_launch.h"
#include "impl/cuda/tile_rows.cuh"

namespace attn {

inline constexpr int decode_warps = 4;  // key tiles of an item go to them in turn

// Items are numbered by batch entry, kv head, tile of packed rows, and split, the last the fastest.
struct DecodeGrid {
  SplitPlan plan;
  unsigned splits;                  // that hold keys
  unsigned group, kv_heads;         // query heads to a kv head; kv heads
  unsigned packed_rows, row_tiles;  // of one kv head
  unsigned items;
};

struct DecodeItem {
  TileRows<true> tile;
  Index kv_head, split;
  Visibility see;
  IndexRange visited;
  Index tiles;  // of the warp: w, w + 4, ...

  __device__ DecodeItem(const TileProblem& problem, const DecodeGrid& grid, unsigned item, int w) {
    split = item % grid.splits;
    const unsigned tiles_before = item / grid.splits, row_tile = tiles_before % grid.row_tiles;
    const unsigned head = tiles_before / grid.row_tiles, batch = head / grid.kv_heads;
    const unsigned first_row = row_tile * static_cast<unsigned>(problem.block_q);
    kv_head = head % grid.kv_heads;
    tile = {batch,
            kv_head * grid.group,
            first_row / grid.group,
            first_row % grid.group,
            grid.group,
            static_cast<int>(smaller(problem.block_q, grid.packed_rows - first_row))};
    see = problem.view.visibility(batch);
    visited = visited_range(see, tile.queries(), grid.plan.keys(split));
    const Index all = block_count(visited, problem.block_k);
    tiles = all > w ? (all - w - 1) / decode_warps + 1 : 0;
  }

  // Keys of the warp's n-th tile.
  __device__ IndexRange keys(const TileProblem& problem, Index nth, int w) const {
    return block_range(visited, problem.block_k, w + decode_warps * nth);
  }
};

}  // namespace attn
