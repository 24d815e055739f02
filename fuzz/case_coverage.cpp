#include "fuzz/case_coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/counters.h"
#include "impl/core/tile_schedule.h"
#include "oracle/recipe.h"

namespace attest::fuzz {
namespace {

using attn::IndexRange;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Tensors = Named<std::vector<double>>;

struct Blocks {
  std::int64_t q, k, splits;
};

Blocks blocks_of(const Case& c, const attn_contract& contract) {
  const auto chosen = [](std::int64_t asked, std::int64_t own) {
    return asked > 0 ? asked : std::max<std::int64_t>(own, 1);
  };
  const bool split = contract.split_merge != ATTN_MERGE_NONE;
  return {chosen(c.tiling.block_q, contract.default_block_q), chosen(c.tiling.block_k, contract.default_block_k),
          split ? chosen(c.tiling.splits, 1) : 1};
}

attn::Visibility visibility(const Case& c) {
  attn::Visibility see{c.shape.tq, c.shape.tk, c.shape.tk, attn::CausalAlignment::none};
  if (!c.mask.kv_len.empty()) see.kv_len = c.mask.kv_len[0];
  if (c.mask.causal == Causal::top_left) see.causal = attn::CausalAlignment::top_left;
  if (c.mask.causal == Causal::bottom_right) see.causal = attn::CausalAlignment::bottom_right;
  return see;
}

// 0: nothing left over; 1: one; 2: all but one; 3: something between; 4: the block is longer than the sequence.
int tail(std::int64_t n, std::int64_t block) {
  if (block > n) return 4;
  const std::int64_t rest = n % block;
  return rest == 0 ? 0 : rest == 1 ? 1 : rest == block - 1 ? 2 : 3;
}

void cover_tiles(const Case& c, const Blocks& blocks) {
  const attn::Visibility see = visibility(c);
  const attn::SplitPlan plan = attn::plan_splits(c.shape.tk, blocks.splits, blocks.k);
  std::int64_t count[3] = {}, empty = 0;
  for (std::int64_t b = 0; b < attn::block_count({0, c.shape.tq}, blocks.q); ++b) {
    const IndexRange rows = attn::block_range({0, c.shape.tq}, blocks.q, b);
    for (std::int64_t t = 0; t < attn::block_count({0, c.shape.tk}, blocks.k); ++t)
      ++count[static_cast<int>(attn::classify(see, rows, attn::block_range({0, c.shape.tk}, blocks.k, t)))];
  }
  for (std::int64_t split = 0; split < std::min<std::int64_t>(blocks.splits, 64); ++split)
    empty += attn::visited_range(see, {0, c.shape.tq}, plan.keys(split)).size() == 0;
  for (int kind = 0; kind < 3; ++kind) met(Situation::tiles, 32 * kind + bucket(count[kind]));
  const int met_kinds = (count[0] > 0) | (count[1] > 0) << 1 | (count[2] > 0) << 2;
  met(Situation::tiles, 96 + 8 * static_cast<int>(c.mask.causal) + met_kinds);
  met(Situation::tails, 5 * tail(c.shape.tq, blocks.q) + tail(c.shape.tk, blocks.k));
  met(Situation::empty_splits, 16 * bucket(std::min<std::int64_t>(blocks.splits, 64)) + bucket(empty));
}

// One row's scores as the kernel meets them; -inf where a key is masked by position.
void cover_row(const std::vector<double>& scores, std::int64_t block_k) {
  double m = -kInfinity, block_m = -kInfinity, least = kInfinity, most = 0;
  std::int64_t rises = -1, order = 1, changes = 0;
  double last_block = -kInfinity;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double s = scores[j];
    if (s > m) ++rises, m = s;
    block_m = std::max(block_m, s);
    if (std::isfinite(s)) least = std::min(least, std::fabs(s)), most = std::max(most, std::fabs(s));
    if ((static_cast<std::int64_t>(j) + 1) % block_k != 0 && j + 1 < scores.size()) continue;
    // A block of masked keys is neither a rise nor a fall: two bits for each of the first blocks.
    if (changes++ > 0 && changes <= 4) order = order * 4 + (block_m == -kInfinity ? 0 : block_m > last_block ? 1 : 2);
    last_block = block_m, block_m = -kInfinity;
  }
  met(Situation::rises, bucket(std::max<std::int64_t>(rises, 0)));
  met(Situation::swings, order);
  if (least > most) return;
  met(Situation::scores, exponent_slot(most));
  met(Situation::scores, 128 + exponent_slot(least));
}

double largest_of(const std::vector<double>& xs) {
  double most = 0;
  for (const double x : xs)
    if (std::isfinite(x)) most = std::max(most, std::fabs(x));
  return most;
}

void cover_forward(const Case& c, const Blocks& blocks) {
  const Shape& s = c.shape;
  cover_tiles(c, blocks);
  const attn::Visibility see = visibility(c);
  std::int64_t masked = 0;
  for (std::int64_t i = 0; i < s.tq; ++i) masked += see.visible_end(i) == 0;
  met(Situation::masked_rows, 8 * bucket(masked) + (masked > 0 ? 1 + (see.visible_end(0) == 0) : 0));
  if (s.tq == 0 || s.tk == 0 || s.tk > 256) return;
  const Tensors tensors = make_values(c);
  const auto &q = tensors.at("q"), &k = tensors.at("k");
  met(Situation::values, exponent_slot(largest_of(tensors.at("v"))));
  std::vector<double> scores;
  // The first head's first and last row stand for the others.
  for (const std::int64_t i : {std::int64_t{0}, s.tq - 1}) {
    scores.clear();
    for (std::int64_t j = 0; j < see.visible_end(i); ++j) {
      double x = 0;
      for (std::int64_t e = 0; e < s.d_qk; ++e)
        x += q[static_cast<std::size_t>(i * s.d_qk + e)] * k[static_cast<std::size_t>(j * s.d_qk + e)];
      scores.push_back(c.effective_scale() * x);
    }
    cover_row(scores, blocks.k);
  }
}

void cover_step(const Case& c, const Blocks& blocks) {
  cover_tiles(c, blocks);
  const Tensors tensors = make_values(c);
  const auto& scores = tensors.at("scores");
  std::int64_t masked = 0;
  for (std::int64_t i = 0; i < c.shape.tq; ++i) {
    const auto begin = scores.begin() + i * c.shape.tk;
    const std::vector<double> row(begin, begin + c.shape.tk);
    const bool blocked = std::all_of(row.begin(), row.end(), [](double x) { return x == -kInfinity; });
    masked += blocked;
    if (i == 0 || i + 1 == c.shape.tq) cover_row(row, blocks.k);
  }
  const auto& m = tensors.at("m");
  const auto empty = std::count(m.begin(), m.end(), -kInfinity);
  met(Situation::masked_rows, 128 + 8 * bucket(masked) + (empty == 0 ? 0 : empty < c.shape.tq ? 1 : 2));
  if (tensors.contains("acc")) met(Situation::values, exponent_slot(largest_of(tensors.at("acc"))));
}

void cover_merge(const Case& c) {
  const Tensors tensors = make_values(c);
  const auto& m = tensors.at("m");
  const auto rows = static_cast<std::size_t>(c.shape.tq);
  for (std::size_t r = 0; r < rows; ++r) {
    std::int64_t empty = 0;
    double top = -kInfinity, bottom = kInfinity;
    for (std::size_t x = r; x < m.size(); x += rows) {
      empty += m[x] == -kInfinity;
      if (!std::isfinite(m[x])) continue;
      top = std::max(top, m[x]), bottom = std::min(bottom, m[x]);
    }
    met(Situation::merge, 12 * c.shape.parts + empty);
    if (top >= bottom) met(Situation::merge_distance, exponent_slot(top - bottom));
  }
  if (tensors.contains("acc")) met(Situation::values, exponent_slot(largest_of(tensors.at("acc"))));
}

}  // namespace

void cover(const Case& c, const Kernel& kernel) {
  const Blocks blocks = blocks_of(c, kernel.abi->contract);
  if (c.op == Op::forward) cover_forward(c, blocks);
  if (c.op == Op::step) cover_step(c, blocks);
  if (c.op == Op::merge) cover_merge(c);
}

}  // namespace attest::fuzz
