// How many parts Flash-Decoding cuts the keys into where the problem leaves it open.
#pragma once

#include "impl/attention.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/tiling.h"

namespace attn {

// From Tk alone: the bits of a row must depend neither on what it is batched with nor on how heads are grouped. Parts
// of at least 512 keys, since each costs a row of partials; 16 parts fill a device of 132 multiprocessors from 8 kv
// heads on; more only where they are at least 4096 keys long, for few heads with long sequences.
constexpr Index default_splits(Index tk) {
  const Index most = smaller(larger(16, tk / 4096), cuda_most_splits);
  return larger(1, smaller(ceil_div(tk, 512), most));
}
inline Index splits_for(const attn_problem& p) {
  return p.tiling.splits > 0 ? p.tiling.splits : default_splits(p.k.shape[2]);
}

static_assert(default_splits(0) == 1 && default_splits(4096) == 8 && default_splits(65536) == 16);
static_assert(default_splits(1 << 24) == cuda_most_splits);

}  // namespace attn
