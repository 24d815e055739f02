#include "impl/tests/schedule_sweep.h"

#include <vector>

namespace attn::test {

namespace {

bool visible_by_definition(const Visibility& see, Index i, Index j) {
  if (see.causal == CausalAlignment::top_left && j > i) return false;
  if (see.causal == CausalAlignment::bottom_right && j > i + see.tk - see.tq) return false;
  return j < see.kv_len;
}

// Walks the schedule as a kernel does; "" or what is wrong.
std::string walk(const Visibility& see, Index block_q, Index block_k, Index splits, std::vector<int>& visits) {
  visits.assign(static_cast<std::size_t>(see.tq * see.tk), 0);
  const SplitPlan plan = plan_splits(see.tk, splits, block_k);
  if (see.tk > 0 && plan.keys_per_split % block_k != 0 && plan.keys_per_split < see.tk)
    return "a split begins inside a tile";
  for (Index b = 0; b < block_count({0, see.tq}, block_q); ++b) {
    const IndexRange rows = block_range({0, see.tq}, block_q, b);
    for (Index split = 0; split < splits; ++split) {
      const IndexRange part = plan.keys(split);
      if (split >= plan.used() && part.size() != 0) return "a split beyond the used ones holds keys";
      const IndexRange visited = visited_range(see, rows, part);
      const Index tiles = block_count(visited, block_k), full = full_tiles(see, rows, visited, block_k);
      for (Index t = 0; t < tiles; ++t) {
        const IndexRange keys = block_range(visited, block_k, t);
        const TileClass tile = classify(see, rows, keys);
        if (tile == TileClass::skip) return "a visited tile has nothing to see";
        if ((tile == TileClass::full) != (t < full)) return "full tiles are not the first ones";
        for (Index i = rows.begin; i < rows.end; ++i)
          for (Index j = keys.begin; j < keys.end; ++j)
            if (tile == TileClass::full || see.visible(i, j)) ++visits[static_cast<std::size_t>(i * see.tk + j)];
      }
    }
  }
  return "";
}

std::string check(const Visibility& see, Index block_q, Index block_k, Index splits, std::vector<int>& visits) {
  std::string wrong = walk(see, block_q, block_k, splits, visits);
  for (Index i = 0; wrong.empty() && i < see.tq; ++i)
    for (Index j = 0; j < see.tk; ++j) {
      const int count = visits[static_cast<std::size_t>(i * see.tk + j)], want = visible_by_definition(see, i, j);
      if (count != want) {
        wrong = "pair (" + std::to_string(i) + ", " + std::to_string(j) + ") is visited " + std::to_string(count) +
                " times, want " + std::to_string(want);
        break;
      }
    }
  if (wrong.empty()) return wrong;
  return wrong + " at tq " + std::to_string(see.tq) + " tk " + std::to_string(see.tk) + " kv_len " +
         std::to_string(see.kv_len) + " causal " + std::to_string(static_cast<int>(see.causal)) + " blocks " +
         std::to_string(block_q) + "x" + std::to_string(block_k) + " splits " + std::to_string(splits);
}

constexpr CausalAlignment alignments[] = {CausalAlignment::none, CausalAlignment::top_left,
                                          CausalAlignment::bottom_right};

}  // namespace

std::string sweep_schedule(Index limit, Index blocks) {
  std::vector<int> visits;
  for (Index tq = 0; tq <= limit; ++tq)
    for (Index tk = 0; tk <= limit; ++tk)
      for (const CausalAlignment causal : alignments)
        for (Index block_q = 1; block_q <= blocks; ++block_q)
          for (Index block_k = 1; block_k <= blocks; ++block_k)
            for (Index splits = 1; splits <= 7; ++splits) {
              // One short key length beside the full one, running through all of them.
              const Index short_len = tk > 0 ? (tq + block_q + 3 * block_k + 5 * splits) % tk : 0;
              for (const Index kv_len : {tk, short_len}) {
                std::string wrong = check({tq, tk, kv_len, causal}, block_q, block_k, splits, visits);
                if (!wrong.empty()) return wrong;
              }
            }
  return "";
}

}  // namespace attn::test
