// The tile schedule: which keys a query row sees, which tiles a query block visits, where splits begin. The one place
// where index bounds of attention are decided; kernels ask and do not compute bounds themselves.
//
// i is a query row, j a key; all ranges are half-open. The visible keys of a row are a prefix [0, visible_end(i)) here
// (causal masks and key lengths); boolean and additive masks thin a prefix out further and make a tile partial.
#pragma once

#include <cstdint>

#include "impl/core/host_device.h"

namespace attn {

using Index = std::int64_t;

struct IndexRange {
  Index begin = 0, end = 0;
  ATTN_HOST_DEVICE constexpr Index size() const { return end - begin; }
};

enum class CausalAlignment { none, top_left, bottom_right };

ATTN_HOST_DEVICE constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }
ATTN_HOST_DEVICE constexpr Index larger(Index a, Index b) { return a > b ? a : b; }
// n, d >= 0, d > 0; no overflow at the top of the range.
ATTN_HOST_DEVICE constexpr Index ceil_div(Index n, Index d) { return n / d + (n % d != 0); }

// Block `index` of a range that is cut every `size` elements; the last one may be short.
ATTN_HOST_DEVICE constexpr IndexRange block_range(IndexRange range, Index size, Index index) {
  const Index begin = range.begin + index * size;
  return {begin, smaller(size, range.end - begin) + begin};
}
ATTN_HOST_DEVICE constexpr Index block_count(IndexRange range, Index size) {
  return range.end > range.begin ? ceil_div(range.size(), size) : 0;
}

// Visibility by position: tq x tk, of which the first kv_len keys exist.
struct Visibility {
  Index tq = 0, tk = 0, kv_len = 0;
  CausalAlignment causal = CausalAlignment::none;

  // One past the last key that row i sees. Never decreases with i.
  ATTN_HOST_DEVICE constexpr Index visible_end(Index i) const {
    Index end = kv_len;
    if (causal == CausalAlignment::top_left) end = smaller(end, i + 1);
    if (causal == CausalAlignment::bottom_right) end = smaller(end, i + tk - tq + 1);
    return larger(end, 0);
  }
  ATTN_HOST_DEVICE constexpr bool visible(Index i, Index j) const { return j >= 0 && j < visible_end(i); }

  // Keys that some row of a query block sees.
  ATTN_HOST_DEVICE constexpr IndexRange visible_range(IndexRange rows) const {
    return {0, rows.size() > 0 ? visible_end(rows.end - 1) : 0};
  }
};

enum class TileClass { skip, full, partial };

// skip: no row sees a key of the tile. full: every row sees every key. An empty tile is skipped.
ATTN_HOST_DEVICE constexpr TileClass classify(const Visibility& see, IndexRange rows, IndexRange keys) {
  if (rows.size() <= 0 || keys.size() <= 0 || keys.begin >= see.visible_end(rows.end - 1)) return TileClass::skip;
  return keys.end <= see.visible_end(rows.begin) ? TileClass::full : TileClass::partial;
}

// Key range of a query block within `keys`, cut to what some row of it sees. Tiles start at keys.begin.
ATTN_HOST_DEVICE constexpr IndexRange visited_range(const Visibility& see, IndexRange rows, IndexRange keys) {
  const IndexRange seen = see.visible_range(rows);
  return {keys.begin, larger(keys.begin, smaller(keys.end, seen.end))};
}

// Number of tiles at the head of a visited range that are full; the others are partial.
ATTN_HOST_DEVICE constexpr Index full_tiles(const Visibility& see, IndexRange rows, IndexRange visited, Index block_k) {
  const Index all_see = smaller(see.visible_end(rows.begin), visited.end);
  if (rows.size() <= 0 || all_see <= visited.begin) return 0;
  return all_see == visited.end ? block_count(visited, block_k) : (all_see - visited.begin) / block_k;
}

// Flash-Decoding: the keys are cut into `splits` parts of keys_per_split keys, a multiple of block_k, so that every
// tile lies in one part; later parts may be empty.
struct SplitPlan {
  Index tk = 0, splits = 1, keys_per_split = 0;

  ATTN_HOST_DEVICE constexpr IndexRange keys(Index split) const {
    // Guarded by division: split * keys_per_split may leave the range of Index when splits is absurd.
    if (keys_per_split <= 0 || split > tk / keys_per_split) return {tk, tk};
    const Index begin = smaller(split * keys_per_split, tk);
    return {begin, smaller(keys_per_split, tk - begin) + begin};
  }
  // Parts up to the last that holds a key.
  ATTN_HOST_DEVICE constexpr Index used() const { return keys_per_split > 0 ? ceil_div(tk, keys_per_split) : 0; }
};
ATTN_HOST_DEVICE constexpr SplitPlan plan_splits(Index tk, Index splits, Index block_k) {
  if (tk <= 0) return {0, splits, 0};
  const Index blocks = ceil_div(ceil_div(tk, splits), block_k);
  // A block longer than the sequence: one part, without forming blocks * block_k.
  return {tk, splits, block_k >= tk ? tk : smaller(blocks * block_k, ceil_div(tk, block_k) * block_k)};
}

static_assert(Visibility{3, 5, 5, CausalAlignment::top_left}.visible_end(2) == 3);
static_assert(Visibility{3, 5, 5, CausalAlignment::bottom_right}.visible_end(0) == 3);
static_assert(Visibility{5, 3, 3, CausalAlignment::bottom_right}.visible_end(1) == 0);
static_assert(classify({8, 8, 8, CausalAlignment::top_left}, {4, 8}, {0, 4}) == TileClass::full);
static_assert(classify({8, 8, 8, CausalAlignment::top_left}, {4, 8}, {4, 8}) == TileClass::partial);
static_assert(classify({8, 8, 8, CausalAlignment::top_left}, {0, 4}, {4, 8}) == TileClass::skip);
static_assert(plan_splits(10, 3, 2).keys_per_split == 4 && plan_splits(10, 7, 4).keys(5).size() == 0);

}  // namespace attn
