// Claim: the tile schedule visits every visible pair (row, key) exactly once and lets no invisible pair through
// unmasked, for all lengths, blocks, splits and masks by position. At small sizes every pair is looked at, and what is
// visible is the oracle's word; at sizes up to 2^62, of which no problem can be made, a pair that the input names.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/counters.h"
#include "fuzz/target.h"
#include "impl/core/tile_schedule.h"
#include "oracle/problem.h"

namespace {

using namespace attn;
using attest::fuzz::bucket;
using attest::fuzz::met;
using attest::fuzz::Situation;

struct Schedule {
  Visibility see;
  Index block_q = 1, block_k = 1, splits = 1;
};

[[noreturn]] void die(const Schedule& s, const char* what, Index i, Index j) {
  std::fprintf(
      stderr,
      "fuzz_schedule: %s at row %lld, key %lld: tq %lld tk %lld kv_len %lld causal %d blocks %lld x %lld splits "
      "%lld\n",
      what, static_cast<long long>(i), static_cast<long long>(j), static_cast<long long>(s.see.tq),
      static_cast<long long>(s.see.tk), static_cast<long long>(s.see.kv_len), static_cast<int>(s.see.causal),
      static_cast<long long>(s.block_q), static_cast<long long>(s.block_k), static_cast<long long>(s.splits));
  std::abort();
}

// The definition of the masks, without a schedule.
bool visible(const Visibility& see, Index i, Index j) {
  if (see.causal == CausalAlignment::top_left && j > i) return false;
  if (see.causal == CausalAlignment::bottom_right && j - see.tk > i - see.tq) return false;
  return j < see.kv_len;
}

// A problem with these masks and as little else as possible.
attest::Case case_of(const Schedule& s) {
  attest::Case c;
  c.shape.tq = s.see.tq, c.shape.tk = s.see.tk;
  c.shape.d_qk = c.shape.d_v = 1;
  c.mask.causal = s.see.causal == CausalAlignment::top_left       ? attest::Causal::top_left
                  : s.see.causal == CausalAlignment::bottom_right ? attest::Causal::bottom_right
                                                                  : attest::Causal::none;
  c.mask.kv_len = {s.see.kv_len};
  c.values.family = "zeros";
  return c;
}

// One tile as a kernel takes it: a full one without looking, a partial one pair by pair.
void visit(const Schedule& s, IndexRange rows, IndexRange keys, bool among_full, std::vector<int>& visits) {
  const TileClass tile = classify(s.see, rows, keys);
  if (tile == TileClass::skip) die(s, "a visited tile has nothing to see", rows.begin, keys.begin);
  if ((tile == TileClass::full) != among_full) die(s, "full tiles are not the first ones", rows.begin, keys.begin);
  for (Index i = rows.begin; i < rows.end; ++i)
    for (Index j = keys.begin; j < keys.end; ++j)
      if (tile == TileClass::full || s.see.visible(i, j)) ++visits[static_cast<std::size_t>(i * s.see.tk + j)];
}

void check_every_pair(const Schedule& s) {
  static std::vector<int> visits;
  visits.assign(static_cast<std::size_t>(s.see.tq * s.see.tk), 0);
  const SplitPlan plan = plan_splits(s.see.tk, s.splits, s.block_k);
  Index tiles_met = 0, full_met = 0, empty = 0;
  for (Index b = 0; b < block_count({0, s.see.tq}, s.block_q); ++b) {
    const IndexRange rows = block_range({0, s.see.tq}, s.block_q, b);
    for (Index split = 0; split < s.splits; ++split) {
      const IndexRange part = plan.keys(split);
      if (split >= plan.used() && part.size() != 0) die(s, "a split beyond the used ones holds keys", 0, part.begin);
      const IndexRange visited = visited_range(s.see, rows, part);
      const Index tiles = block_count(visited, s.block_k), full = full_tiles(s.see, rows, visited, s.block_k);
      for (Index t = 0; t < tiles; ++t) visit(s, rows, block_range(visited, s.block_k, t), t < full, visits);
      tiles_met += tiles, full_met += full, empty += part.size() == 0;
    }
  }
  const attest::Problem problem(case_of(s), {});
  for (Index i = 0; i < s.see.tq; ++i)
    for (Index j = 0; j < s.see.tk; ++j)
      if (visits[static_cast<std::size_t>(i * s.see.tk + j)] != problem.visible(0, 0, i, j))
        die(s, "a pair is not visited as often as it is visible", i, j);
  met(Situation::schedule, 16 * bucket(full_met) + bucket(tiles_met - full_met));
  met(Situation::empty_splits, 16 * bucket(s.splits) + bucket(empty));
}

// Where pair (i, j) is met in a schedule that is too long to be walked.
void check_pair(const Schedule& s, Index i, Index j) {
  const SplitPlan plan = plan_splits(s.see.tk, s.splits, s.block_k);
  const Index own = j / plan.keys_per_split;
  for (const Index split : {own - 1, own, own + 1, s.splits - 1}) {
    if (split < 0 || split >= s.splits) continue;
    const IndexRange part = plan.keys(split);
    if ((j >= part.begin && j < part.end) != (split == own)) die(s, "a key is not in exactly one split", i, j);
  }
  const IndexRange rows = block_range({0, s.see.tq}, s.block_q, i / s.block_q);
  if (i < rows.begin || i >= rows.end) die(s, "a row is not in its block", i, j);
  const IndexRange visited = visited_range(s.see, rows, plan.keys(own));
  if (j >= visited.end) {
    if (visible(s.see, i, j)) die(s, "a visible pair is not visited", i, j);
    met(Situation::schedule, 250);
    return;
  }
  const Index t = (j - visited.begin) / s.block_k;
  const IndexRange keys = block_range(visited, s.block_k, t);
  if (t >= block_count(visited, s.block_k) || j < keys.begin || j >= keys.end) die(s, "a key is in no tile", i, j);
  const bool full = t < full_tiles(s.see, rows, visited, s.block_k);
  if (full != (classify(s.see, rows, keys) == TileClass::full)) die(s, "two answers to whether a tile is full", i, j);
  if ((full || s.see.visible(i, j)) != visible(s.see, i, j)) die(s, "a pair is let through, or not, wrongly", i, j);
  met(Situation::schedule, 251 + full);
}

// 0..2^62, all magnitudes alike.
Index long_length(attest::fuzz::Bytes& bytes) {
  const int shift = static_cast<int>(bytes.between(2, 63));
  return static_cast<Index>(bytes.quad() >> shift) + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ++attest::fuzz::tally.inputs;
  attest::fuzz::Bytes bytes({data, size});
  Schedule s;
  s.see.causal = static_cast<CausalAlignment>(bytes.between(0, 2));
  const bool is_long = bytes.between(0, 3) == 3;
  if (!is_long) {
    s.see.tq = bytes.between(0, 40, 3);
    s.see.tk = bytes.between(0, 64, 5);
    s.see.kv_len = bytes.flag() ? bytes.between(0, 64) % (s.see.tk + 1) : s.see.tk;
    s.block_q = bytes.between(1, 48, 2);
    s.block_k = bytes.between(1, 72, 2);
    s.splits = bytes.between(1, 80);
    check_every_pair(s);
  } else {
    s.see.tq = long_length(bytes);
    s.see.tk = long_length(bytes);
    s.see.kv_len = bytes.flag() ? long_length(bytes) % (s.see.tk + 1) : s.see.tk;
    s.block_q = long_length(bytes);
    s.block_k = long_length(bytes);
    s.splits = long_length(bytes);
    const Index i = long_length(bytes) % s.see.tq, j = long_length(bytes) % s.see.tk;
    check_pair(s, i, j);
  }
  ++attest::fuzz::tally.accepted;
  return 0;
}
