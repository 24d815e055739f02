// Which rows, keys and tiles each block and each of its warpgroups works on. Bounds come from the tile schedule.
#pragma once

#include <cstdint>

#include "impl/cuda/forward_view.cuh"

namespace attn::hopper {

// The order of query blocks. Heads are taken in sections whose keys and values stay in the L2 cache; within a section
// the longest query blocks (the last, under a causal mask) come first, heads innermost.
struct BlockOrder {
  std::uint32_t blocks;         // query blocks of a head
  std::uint32_t heads;          // of all batch entries
  std::uint32_t heads_at_once;  // of a section
  std::uint32_t q_heads;        // of a batch entry

  struct Place {
    int batch, head, block;
  };
  __host__ __device__ std::uint32_t total() const { return blocks * heads; }
  __host__ __device__ Place place(std::uint32_t index) const {
    const std::uint32_t section = index / (heads_at_once * blocks);
    const std::uint32_t first = section * heads_at_once;
    const std::uint32_t width = heads - first < heads_at_once ? heads - first : heads_at_once;
    const std::uint32_t inside = index - first * blocks;
    const std::uint32_t row = inside / width, head = first + inside - row * width;
    return {static_cast<int>(head / q_heads), static_cast<int>(head % q_heads), static_cast<int>(blocks - 1 - row)};
  }
};

// Tiles of block_k keys, from key 0, that some rows visit; the first `full` of them need no mask.
struct TileCount {
  int visited, full;
};
__host__ __device__ inline TileCount count_tiles(const Visibility& see, IndexRange rows, int block_k) {
  const IndexRange keys = visited_range(see, rows, {0, see.tk});
  // A tile is block_k keys even where the visited range ends inside it: such a tile is not full.
  const Index full = smaller(full_tiles(see, rows, keys, block_k), keys.size() / block_k);
  return {static_cast<int>(block_count(keys, block_k)), static_cast<int>(full)};
}
__host__ __device__ inline IndexRange cut_rows(Index begin, Index count, Index tq) {
  return {smaller(begin, tq), smaller(begin + count, tq)};
}

// What there is to do for a query block.
template <int Groups>
struct Plan {
  int batch, head, kv_head, first_row, kv_len;
  int head_end;            // one past the last key that any row of the head sees
  int tiles;               // that the block visits; negative: there are no more blocks
  TileCount mine[Groups];  // of them, those of each warpgroup's 64 rows
};

}  // namespace attn::hopper
