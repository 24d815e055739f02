// Where the running maximum of a row starts over (splits), and how often it can rise.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

// Blocks whose maximum may exceed all before, by intervals: near-ties make the exact count too small, because computed
// maxima decide. The first block rises from nothing and rescales nothing.
// after: for each key, how many of them come after its block.
std::int64_t possible_rises(const Segment& s, std::int64_t block_k, std::int64_t first_key, const Row& row,
                            const RowStats& stats, const std::vector<double>& delta, std::vector<double>& after) {
  std::int64_t rises = 0;
  double floor_before = -HUGE_VAL;  // certain lower end of the running maximum
  for (std::int64_t j = s.begin; j < s.end;) {
    const std::int64_t begin = j, block = (row.key[j] - first_key) / block_k;
    double top = -HUGE_VAL, certain = -HUGE_VAL;
    for (; j < s.end && (row.key[j] - first_key) / block_k == block; ++j) {
      top = std::max(top, delta[j] - stats.gap[j]);
      certain = std::max(certain, -delta[j] - stats.gap[j]);
    }
    if (top > floor_before && floor_before > -HUGE_VAL) ++rises;
    floor_before = std::max(floor_before, certain);
    for (std::int64_t i = begin; i < j; ++i) after[i] = static_cast<double>(rises);
  }
  for (std::int64_t i = s.begin; i < s.end; ++i) after[i] = static_cast<double>(rises) - after[i];
  return rises;
}

void count_blocks(Segment& s, const Arithmetic& a, std::int64_t block_k, std::int64_t first_key, const Row& row) {
  const std::int64_t lanes = std::max(1, a.contract.mma_terms);
  std::int64_t last_block = -1, last_step = -1;
  s.blocks = s.pv_steps = 0;
  for (std::int64_t j = s.begin; j < s.end; ++j) {
    const std::int64_t offset = row.key[j] - first_key, block = offset / block_k;
    const std::int64_t step = offset % block_k / lanes;
    if (block != last_block) ++s.blocks;
    if (block != last_block || step != last_step) ++s.pv_steps;
    last_block = block;
    last_step = step;
  }
}

void measure(Segment& s, const Row& row, const RowStats& stats) {
  s.max_gap = HUGE_VAL;
  for (std::int64_t j = s.begin; j < s.end; ++j) s.max_gap = std::min(s.max_gap, stats.gap[j]);
  double sum = 0;
  for (std::int64_t j = s.begin; j < s.end; ++j) sum += std::exp(s.max_gap - stats.gap[j]);
  s.scaled_max = row.scale * stats.m - s.max_gap;
  s.log_sum = std::log(sum);
  s.lse = s.scaled_max + s.log_sum;
}

// Splits whose cuts nobody told: any key may open one, so a range of keys touches one block more than it fills.
Segment unknown_cuts(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats) {
  Segment s;
  s.end = row.size();
  s.max_gap = 0;
  s.scaled_max = row.scale * stats.m;
  s.log_sum = std::log(stats.W);
  s.lse = stats.lse;
  const std::int64_t range = row.key.back() - row.key.front() + 1, n = row.size();
  const std::int64_t lanes = std::max(1, a.contract.mma_terms);
  const std::int64_t most = (range - 1) / plan.block_k + 2;
  s.blocks = std::min(n, most);
  s.rises = s.blocks - 1;
  s.pv_steps = std::min(n, range / lanes + 1 + most + plan.splits);
  return s;
}

}  // namespace

std::vector<Segment> make_segments(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                                   ForwardTerms& t) {
  std::vector<Segment> segments;
  t.rises_after.assign(row.key.size(), 0.0);
  const bool split = a.contract.algorithm == ATTN_ALG_SPLIT;
  t.cuts_known = !split || plan.splits == 1 || plan.keys_per_split > 0;
  if (!t.cuts_known) {
    segments.push_back(unknown_cuts(a, plan, row, stats));
    t.rises_after.assign(row.key.size(), static_cast<double>(segments[0].rises));
    return segments;
  }
  const std::int64_t per_split = split && plan.splits > 1 ? plan.keys_per_split : std::max<std::int64_t>(1, row.tk);
  const std::int64_t block_k = std::max<std::int64_t>(1, plan.block_k);
  for (std::int64_t j = 0; j < row.size();) {
    Segment s;
    s.begin = j;
    const std::int64_t part = row.key[j] / per_split, first_key = part * per_split;
    while (j < row.size() && row.key[j] / per_split == part) ++j;
    s.end = j;
    measure(s, row, stats);
    count_blocks(s, a, block_k, first_key, row);
    if (a.contract.sum_order == ATTN_SUM_SEQUENTIAL) {
      s.rises = possible_rises(s, block_k, first_key, row, stats, t.delta, t.rises_after);
    } else {
      s.rises = s.blocks - 1;
      std::fill(t.rises_after.begin() + s.begin, t.rises_after.begin() + s.end, static_cast<double>(s.rises));
    }
    segments.push_back(s);
  }
  return segments;
}

}  // namespace attest
