// The readable forward kernel: one row at a time, keys in blocks and splits, online softmax, LSE merge. It is right
// when bug == Bug::none; every `is(Bug::x)` is one planted bug.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "properties/mutants/bug.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Forward {
  Bug bug;
  const attn_problem& p;
  int64_t B, Hq, Hkv, Tq, Tk, dqk, dv, block_q, block_k, splits;
  float scale;

  bool is(Bug b) const { return bug == b; }

  explicit Forward(Bug planted, const attn_problem& problem) : bug(planted), p(problem) {
    B = p.q.shape[0], Hq = p.q.shape[1], Tq = p.q.shape[2], dqk = p.q.shape[3];
    Hkv = p.k.shape[1], Tk = p.k.shape[2], dv = p.v.shape[3];
    block_q = p.tiling.block_q > 0 ? p.tiling.block_q : 16;
    block_k = p.tiling.block_k > 0 ? p.tiling.block_k : 32;
    splits = p.tiling.splits > 0 ? p.tiling.splits : 1;
    if (is(Bug::none_whole_row)) block_k = std::max<int64_t>(1, Tk), splits = 1;
    if (is(Bug::splits_by_batch)) splits = B;
    scale = static_cast<float>(p.scale);
    if (is(Bug::scale_ignored)) scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dqk)));
    if (is(Bug::scale_off_by_2_pow_minus_10)) scale *= 1 + 0x1p-10f;
    if (is(Bug::scale_twice)) scale *= scale;
  }

  int64_t kv_head(int64_t h) const {
    if (is(Bug::gqa_modulo)) return h % Hkv;
    if (is(Bug::gqa_first_head)) return 0;
    return h / (Hq / Hkv);
  }

  int64_t keys(int64_t b) const {
    if (!p.mask.kv_len || is(Bug::kv_len_ignored)) return Tk;
    return p.mask.kv_len[is(Bug::kv_len_of_first_batch) ? 0 : b];
  }

  // One past the last key that row i may see by causality.
  int64_t causal_end(int64_t i) const {
    if (p.mask.causal == ATTN_CAUSAL_NONE || is(Bug::causal_ignored)) return Tk;
    bool bottom = p.mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT;
    if (is(Bug::causal_top_left_always)) bottom = false;
    if (is(Bug::causal_bottom_right_always)) bottom = true;
    int64_t end = i + 1 + (bottom ? Tk - Tq : 0);
    if (is(Bug::causal_off_by_one)) end -= 1;
    if (is(Bug::future_key_leaks)) end += 1;
    return std::clamp<int64_t>(end, 0, Tk);
  }

  bool visible(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t end = keys(b);
    if (is(Bug::key_at_kv_len_visible) && p.mask.kv_len) end = std::min(end + 1, Tk);
    if (j >= end || j >= causal_end(i)) return false;
    if (p.mask.visible.data && !is(Bug::mask_ignored) &&
        !static_cast<const uint8_t*>(p.mask.visible.data)[offset(p.mask.visible, b, h, i, j)])
      return false;
    if (p.mask.additive.data && !is(Bug::additive_ignored) && !is(Bug::additive_in_16_bit) &&
        load_at(p.mask.additive, offset(p.mask.additive, b, h, i, j)) == -kInf)
      return false;
    return true;
  }

  // Tiles that hold nothing visible are not visited; q0 is the first row of the query block.
  bool skipped(int64_t q0, int64_t j0) const {
    if (p.mask.causal == ATTN_CAUSAL_NONE) {
      return is(Bug::skips_tiles_without_causal) && j0 > std::min(q0 + block_q, Tq) - 1;
    }
    if (is(Bug::causal_end_by_block_q)) return j0 >= causal_end(q0) / block_q * block_q + block_q;
    return j0 >= causal_end(std::min(q0 + block_q, Tq) - 1);
  }

  int64_t k_offset(int64_t b, int64_t h, int64_t j, int64_t e) const {
    int64_t row = j * (is(Bug::row_stride_dense) ? dqk : p.k.stride[2]);
    if (is(Bug::offset_16_bit)) row &= 0xffff;
    return b * p.k.stride[0] + h * p.k.stride[1] + row + e * p.k.stride[3];
  }

  float value(int64_t b, int64_t h, int64_t j, int64_t e) const {
    if (is(Bug::head_stride_swapped)) std::swap(b, h);
    return load_at(p.v, offset(p.v, b, h, j, e));
  }

  float score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t d = is(Bug::head_dim_multiple_of_8) ? dqk / 8 * 8 : dqk;
    float x = 0;
    for (int64_t e = 0; e < d; ++e) {
      x = std::fma(load_at(p.q, offset(p.q, b, h, i, e)), load_at(p.k, k_offset(b, kv_head(h), j, e)), x);
    }
    if (is(Bug::scores_in_16_bit)) x = round_to(p.q.dtype == ATTN_FP32 ? ATTN_FP16 : p.q.dtype, x);
    if (is(Bug::additive_in_16_bit) && p.mask.additive.data &&
        load_at(p.mask.additive, offset(p.mask.additive, b, h, i, j)) == -kInf)
      x -= 6e4f;
    return x;
  }

  float weight(float x, float m) const {
    float z = (x - m) * scale;
    if (is(Bug::no_max_subtraction)) z = x * scale;
    float w = exp_f(z);
    if (is(Bug::fast_exp)) w *= 1 + 0x1p-11f * static_cast<float>(std::sin(static_cast<double>(z)));
    return w;
  }

  struct Partial {
    float m = -kInf, l = 0;
    std::vector<float> acc;
    bool any = false;
  };

  void add_block(Partial& s, const std::vector<float>& x, const std::vector<int64_t>& key, int64_t b, int64_t h) const {
    if (x.empty()) return;
    float top = -kInf;
    bool nan = false;
    for (float y : x) top = std::max(top, y), nan |= std::isnan(y);
    if (nan && !is(Bug::nan_max_dropped)) top = std::nanf("");
    float m = is(Bug::max_of_last_block) || nan ? top : std::max(s.m, top);
    if (std::isnan(s.m)) m = s.m;
    if (is(Bug::max_in_16_bit)) m = round_to(ATTN_BF16, m);
    if (is(Bug::value_dependent_skip) && s.any && (top - s.m) * scale < -4) return;
    float c = s.any || std::isfinite(s.m) ? exp_f((s.m - m) * scale) : 0;
    if (is(Bug::no_max_subtraction)) c = 1;
    if (is(Bug::rescale_missing)) c = s.any ? 1 : 0;
    if (is(Bug::rescale_inverted)) c = s.any ? exp_f((m - s.m) * scale) : 0;
    if (is(Bug::rescale_wrong_frame)) c = s.any ? exp_f(s.m - m) : 0;
    if (is(Bug::nan_max_dropped) && m == -kInf) return;
    s.l *= is(Bug::rescale_of_sum_missing) ? 1 : c;
    for (float& a : s.acc) a *= c;
    s.m = m, s.any = true;
    const int64_t columns = is(Bug::value_dim_is_head_dim) ? std::min(dv, dqk) : dv;
    for (size_t t = 0; t < x.size(); ++t) {
      const float w = weight(x[t], m);
      s.l += w;
      if (is(Bug::sum_in_16_bit)) s.l = round_to(ATTN_FP16, s.l);
      float rounded = is(Bug::p_truncated) ? truncate_to(p.q.dtype, w) : round_to(p.q.dtype, w);
      if (is(Bug::sum_of_rounded_p_dropped_tail) && w < 0x1p-8f) rounded = 0;
      for (int64_t e = 0; e < columns; ++e) {
        s.acc[e] = std::fma(rounded, value(b, kv_head(h), key[t], e), s.acc[e]);
        if (is(Bug::accumulator_in_16_bit)) s.acc[e] = round_to(ATTN_FP16, s.acc[e]);
      }
    }
  }

  Partial run_keys(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi) const;
  void finish(int64_t b, int64_t h, int64_t i, Partial& s, float* o, float* lse) const;
  void merge(std::vector<std::vector<float>>& os, std::vector<float>& lses, float* o, float* lse) const;
  void row(int64_t b, int64_t h, int64_t i) const;
};

Forward::Partial Forward::run_keys(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi) const {
  Partial s;
  s.acc.assign(static_cast<size_t>(dv), 0);
  if (is(Bug::sentinel_small)) s.m = -1e4f;
  if (is(Bug::max_stored_as_zero)) s.m = 0;
  const int64_t q0 = i / block_q * block_q;
  int64_t step = block_k;
  if (is(Bug::order_by_block_q)) step = std::max<int64_t>(1, std::min(block_k, block_q));
  std::vector<int64_t> starts;
  for (int64_t j0 = lo; j0 < hi; j0 += step) starts.push_back(j0);
  static std::atomic<unsigned> launches{0};
  if ((is(Bug::nondeterministic_order) && launches++ % 2) || (is(Bug::order_by_group) && Hq > Hkv) ||
      (is(Bug::order_by_layout) && p.k.stride[2] != dqk)) {
    std::reverse(starts.begin(), starts.end());
  }
  for (int64_t j0 : starts) {
    int64_t j1 = std::min(j0 + step, hi);
    if (skipped(q0, j0)) continue;
    if (is(Bug::tail_tile_skipped) && j1 - j0 < step && j0 > lo) continue;
    if (is(Bug::last_key_dropped) && j1 == Tk && Tk % step != 0 && j1 - j0 > 1) j1 -= 1;
    const bool full = is(Bug::full_tile_misjudged) && p.mask.causal != ATTN_CAUSAL_NONE && j0 < causal_end(i) &&
                      j1 <= causal_end(std::min(q0 + block_q, Tq) - 1);
    std::vector<float> x;
    std::vector<int64_t> key;
    for (int64_t j = j0; j < j1; ++j) {
      if (full || visible(b, h, i, j)) {
        x.push_back(score(b, h, i, j)), key.push_back(j);
      } else if (is(Bug::masked_score_added)) {
        const float y = score(b, h, i, j) - kInf;
        if (std::isnan(y)) x.push_back(y), key.push_back(j);
      } else if (is(Bug::masked_key_leaks_value)) {
        for (int64_t e = 0; e < dv; ++e) s.acc[e] = std::fma(0.0f, value(b, kv_head(h), j, e), s.acc[e]);
      } else if (is(Bug::empty_row_mean)) {
        x.push_back(-1e30f), key.push_back(j);
      }
    }
    if (is(Bug::empty_block_nan) && x.empty() && !s.any) s.l = std::nanf("");
    if (is(Bug::tile_wide_max) && !x.empty()) {
      float top = -kInf;
      for (int64_t r = i; r < std::min(i + 2, Tq); ++r)
        for (int64_t j = j0; j < j1; ++j) top = std::max(top, score(b, h, r, j));
      if (std::isfinite(top)) s.m = s.any ? s.m : top;
    }
    add_block(s, x, key, b, h);
    if (is(Bug::tail_key_weight_one) && j1 - j0 < step && s.any)
      s.l += static_cast<float>(step - (j1 - j0)) * exp_f(-s.m * scale);
  }
  if (is(Bug::reads_past_end) && hi == Tk && Tk > 0) {
    const float beyond = load_at(p.k, k_offset(b, kv_head(h), Tk, 0));
    s.l += 0 * beyond;
  }
  return s;
}

void Forward::finish(int64_t, int64_t, int64_t, Partial& s, float* o, float* lse) const {
  const bool empty = !s.any && !is(Bug::no_empty_guard) && !std::isnan(s.l);
  if (empty) {
    std::fill(o, o + dv, 0.0f);
    *lse = is(Bug::empty_row_lse_zero) ? 0 : -kInf;
    return;
  }
  for (int64_t e = 0; e < dv; ++e) {
    o[e] = is(Bug::half_reciprocal) ? s.acc[e] * round_to(ATTN_FP16, 1 / s.l) : s.acc[e] / s.l;
    if (is(Bug::nan_swallowed) && std::isnan(o[e])) o[e] = 0;
  }
  const float m = is(Bug::no_max_subtraction) ? 0 : s.m * (is(Bug::lse_unscaled_max) ? 1 : scale);
  *lse = m + log_f(s.l);
  if (is(Bug::lse_base_2)) *lse *= 1.44269504f;
  if (is(Bug::lse_without_max)) *lse = log_f(s.l);
  if (is(Bug::lse_off_by_constant)) *lse += 0x1p-9f;
  if (is(Bug::lse_negated_log)) *lse = m - log_f(s.l);
}

void Forward::merge(std::vector<std::vector<float>>& os, std::vector<float>& lses, float* o, float* lse) const {
  float top = -kInf;
  for (float y : lses) top = std::isnan(y) || std::isnan(top) ? std::nanf("") : std::max(top, y);
  std::fill(o, o + dv, 0.0f);
  if (top == -kInf) {
    *lse = -kInf;
    return;
  }
  if (is(Bug::split_no_far_guard)) top = 0;
  float sum = 0;
  for (size_t s = 0; s < lses.size(); ++s) {
    const float w = exp_f(lses[s] - top);
    sum += w;
    for (int64_t e = 0; e < dv; ++e) {
      if (is(Bug::split_partial_in_16_bit)) os[s][e] = round_to(ATTN_BF16, os[s][e]);
      o[e] += w * os[s][e];
    }
  }
  for (int64_t e = 0; e < dv && !is(Bug::split_not_normalised); ++e) o[e] /= sum;
  *lse = top + log_f(sum);
}

void Forward::row(int64_t b, int64_t h, int64_t i) const {
  const bool partial_block = Tq % block_q != 0 && i == Tq - 1;
  if (is(Bug::last_row_unwritten) && partial_block) return;
  std::vector<float> o(static_cast<size_t>(dv));
  float lse = -kInf;
  if (splits == 1) {
    Partial s = run_keys(b, h, i, 0, Tk);
    if (is(Bug::empty_rows_unwritten) && !s.any) return;
    finish(b, h, i, s, o.data(), &lse);
  } else {
    const int64_t per = ((Tk + splits - 1) / splits + block_k - 1) / block_k * block_k;
    std::vector<std::vector<float>> os;
    std::vector<float> lses;
    for (int64_t s = 0; s < splits; ++s) {
      const int64_t lo = std::min(s * per, Tk);
      int64_t hi = std::min(lo + per, Tk);
      if (is(Bug::split_last_dropped) && s > 0 && hi == Tk && hi - lo < per) hi = lo;
      if (is(Bug::split_overlaps) && hi < Tk) hi += 1;
      Partial part = run_keys(b, h, i, lo, hi);
      os.emplace_back(static_cast<size_t>(dv));
      float y = 0;
      finish(b, h, i, part, os.back().data(), &y);
      if (is(Bug::split_empty_garbage) && !part.any) y = 0;
      lses.push_back(y);
    }
    merge(os, lses, o.data(), &lse);
  }
  for (int64_t e = 0; e < dv; ++e) {
    const int64_t at = is(Bug::output_stride_dense) ? ((b * Hq + h) * Tq + i) * dv + e : offset(p.o, b, h, i, e);
    store_at(p.o, at, o[e]);
  }
  if (is(Bug::writes_past_end) && i == Tq - 1 && h == Hq - 1 && b == B - 1 && dv > 0)
    store_at(p.o, offset(p.o, b, h, i, dv), 1);
  if (p.lse.data && !(is(Bug::lse_unwritten) && lse == -kInf)) {
    store_at(p.lse, b * p.lse.stride[0] + h * p.lse.stride[1] + i * p.lse.stride[2], lse);
  }
}

}  // namespace

int32_t run_forward(Bug bug, const attn_problem& p) {
  const Forward f(bug, p);
  for (int64_t b = 0; b < f.B; ++b) {
    for (int64_t h = 0; h < f.Hq; ++h) {
      for (int64_t i = 0; i < f.Tq; ++i) f.row(b, h, i);
    }
  }
  if (bug == Bug::writes_input && f.B * f.Hq * f.Tq * f.dqk > 0) store_at(p.q, 0, load_at(p.q, 0) * 0.5f);
  return ATTN_OK;
}

}  // namespace attest::mutants
