// The walk over the key blocks of one row.
#include <algorithm>
#include <atomic>

#include "properties/mutants/forward.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {

// Rows 2n and 2n + 1 share a thread in kernels that hold two rows each.
bool Forward::neighbour_overflows(int64_t b, int64_t h, int64_t i) const {
  const int64_t other = i ^ 1;
  for (int64_t j = 0; other < Tq && j < Tk; ++j)
    if (visible(b, h, other, j) && std::fabs(score(b, h, other, j)) > 1e30f) return true;
  return false;
}

// Where the blocks of [lo, hi) begin, in the order in which they are visited.
std::vector<int64_t> Forward::block_starts(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi,
                                           int64_t step) const {
  std::vector<int64_t> starts;
  const int64_t threads = is(Bug::order_by_threads) ? std::max<int64_t>(1, p.tiling.threads) : 1;
  for (int64_t t = 0; t < threads; ++t)
    for (int64_t j0 = lo + t * step; j0 < hi; j0 += threads * step) starts.push_back(j0);
  static std::atomic<unsigned> launches{0};
  if ((is(Bug::nondeterministic_order) && launches++ % 2) || (is(Bug::order_by_group) && Hq > 2 * Hkv) ||
      (is(Bug::order_by_layout) && p.k.stride[2] != dqk) || (is(Bug::overflow_vote) && neighbour_overflows(b, h, i))) {
    std::reverse(starts.begin(), starts.end());
  }
  return starts;
}

Forward::Partial Forward::run_keys(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi) const {
  Partial s;
  s.acc.assign(static_cast<size_t>(dv), 0);
  if (is(Bug::sentinel_small)) s.m = -1e4f;
  if (is(Bug::max_stored_as_zero)) s.m = 0;
  const int64_t q0 = i / block_q * block_q;
  int64_t step = block_k;
  if (is(Bug::order_by_block_q)) step = std::max<int64_t>(1, std::min(block_k, block_q));
  for (int64_t j0 : block_starts(b, h, i, lo, hi, step)) {
    int64_t j1 = std::min(j0 + step, hi);
    if (skipped(q0, j0)) continue;
    if (is(Bug::tail_tile_skipped) && j1 - j0 < step && j0 > lo) continue;
    if (is(Bug::last_key_dropped) && j1 == Tk && Tk % step != 0 && j1 - j0 > 1) j1 -= 1;
    const bool full = is(Bug::full_tile_misjudged) && p.mask.causal != ATTN_CAUSAL_NONE && j0 < causal_end(i) &&
                      j1 <= causal_end(std::min(q0 + block_q, Tq) - 1);
    Block block;
    for (int64_t j = j0; j < j1; ++j) {
      if (full || visible(b, h, i, j)) {
        block.x.push_back(score(b, h, i, j)), block.key.push_back(j);
        if (is(Bug::scores_twice)) block.again.push_back(score_from_the_end(b, h, i, j));
      } else if (is(Bug::masked_score_added)) {
        const float y = score(b, h, i, j) - kInf;
        if (std::isnan(y)) block.x.push_back(y), block.key.push_back(j);
      } else if (is(Bug::masked_key_leaks_value) || (is(Bug::masked_inf_leaks) && j >= keys(b))) {
        for (int64_t e = 0; e < dv; ++e) {
          float v = value(b, kv_head(h), j, e);
          if (is(Bug::masked_inf_leaks) && std::isnan(v)) v = 0;
          s.acc[e] = std::fma(0.0f, v, s.acc[e]);
        }
      } else if (is(Bug::empty_row_mean)) {
        block.x.push_back(-1e30f), block.key.push_back(j);
      }
    }
    if (is(Bug::empty_block_nan) && block.x.empty() && !s.any) s.l = std::nanf("");
    if (is(Bug::tile_wide_max) && !block.x.empty()) {
      float top = -kInf;
      for (int64_t r = i; r < std::min(i + 2, Tq); ++r)
        for (int64_t j = j0; j < j1; ++j) top = std::max(top, score(b, h, r, j));
      if (std::isfinite(top)) s.m = s.any ? s.m : top;
    }
    add_block(s, block, b, h);
    if (is(Bug::tail_key_weight_one) && j1 - j0 < step && s.any)
      s.l += static_cast<float>(step - (j1 - j0)) * exp_f(-s.m * scale);
  }
  if (is(Bug::reads_past_end) && hi == Tk && Tk > 0) {
    const float beyond = load_at(p.k, k_offset(b, kv_head(h), Tk, 0));
    s.l += 0 * beyond;
  }
  return s;
}

}  // namespace attest::mutants
