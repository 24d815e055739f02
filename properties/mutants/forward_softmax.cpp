// The online softmax, the end of a split, and the merge of splits.
#include <algorithm>

#include "properties/mutants/forward.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {

// What O and l so far are multiplied with when the maximum becomes m.
float Forward::rescale(const Partial& s, float m) const {
  float c = s.any || std::isfinite(s.m) ? exp_f((s.m - m) * scale) : 0;
  if (is(Bug::no_max_subtraction)) c = 1;
  if (is(Bug::rescale_missing)) c = s.any ? 1 : 0;
  if (is(Bug::rescale_inverted)) c = s.any ? exp_f((m - s.m) * scale) : 0;
  if (is(Bug::rescale_wrong_frame)) c = s.any ? exp_f(s.m - m) : 0;
  return c;
}

void Forward::add_block(Partial& s, const Block& block, int64_t b, int64_t h) const {
  const std::vector<float>& x = block.x;
  if (x.empty()) return;
  float top = -kInf;
  bool nan = false;
  for (float y : x) top = std::max(top, y), nan |= std::isnan(y);
  if (nan && !is(Bug::nan_max_dropped)) top = std::nanf("");
  float m = is(Bug::max_of_last_block) || nan ? top : std::max(s.m, top);
  if (std::isnan(s.m)) m = s.m;
  if (is(Bug::max_in_16_bit)) m = round_to(ATTN_BF16, m);
  if (is(Bug::value_dependent_skip) && s.any && (top - s.m) * scale < -4) return;
  if (is(Bug::nan_max_dropped) && m == -kInf) return;
  const float c = rescale(s, m);
  s.l *= is(Bug::rescale_of_sum_missing) ? 1 : c;
  float c_of_o = c, m_of_p = m;
  const std::vector<float>& of_p = is(Bug::scores_twice) && x.size() >= 8 && std::fabs(m) > 1e4f ? block.again : x;
  if (is(Bug::scores_twice) && !std::isnan(m)) {
    m_of_p = std::max(s.m_again, *std::max_element(of_p.begin(), of_p.end()));
    c_of_o = s.any ? exp_f((s.m_again - m_of_p) * scale) : 0;
    s.m_again = m_of_p;
  }
  for (float& a : s.acc) a *= c_of_o;
  s.m = m, s.any = true;

  std::vector<float> weights;
  for (size_t t = 0; t < x.size(); ++t) {
    const bool is_long = p.k.shape[2] > 512;
    const bool chops = is_long ? is(Bug::long_sum_chopped) : is(Bug::sum_chopped) && t % 2;
    s.l = chops ? add_chopped(s.l, weight(x[t], m)) : s.l + weight(x[t], m);
    if (is(Bug::sum_in_16_bit)) s.l = round_to(ATTN_FP16, s.l);
    const float w = weight(of_p[t], m_of_p);
    float rounded = round_to(p.q.dtype, w);
    if (is(Bug::p_truncated)) rounded = truncate_to(p.q.dtype, w);
    if (is(Bug::p_rounds_down)) rounded = round_down_within_u_to(p.q.dtype, w);
    if (is(Bug::sum_of_rounded_p_dropped_tail) && w < 0x1p-8f) rounded = 0;
    weights.push_back(rounded);
  }
  const int64_t columns = is(Bug::value_dim_is_head_dim) ? std::min(dv, dqk) : dv;
  for (int64_t e = 0; e < columns; ++e) {
    const bool backwards = is(Bug::order_by_value) && std::fabs(value(b, kv_head(h), block.key[0], e)) > 1;
    for (size_t n = 0; n < x.size(); ++n) {
      const size_t t = backwards ? x.size() - 1 - n : n;
      s.acc[e] = std::fma(weights[t], value(b, kv_head(h), block.key[t], e), s.acc[e]);
      if (is(Bug::accumulator_in_16_bit)) s.acc[e] = round_to(ATTN_FP16, s.acc[e]);
    }
  }
}

void Forward::finish(Partial& s, float* o, float* lse) const {
  const bool empty = !s.any && !is(Bug::no_empty_guard) && !std::isnan(s.l);
  if (empty) {
    std::fill(o, o + dv, 0.0f);
    *lse = is(Bug::empty_row_lse_zero) ? 0 : -kInf;
    return;
  }
  const bool divided = !is(Bug::no_lse_path) || p.lse.data;
  for (int64_t e = 0; e < dv; ++e) {
    o[e] = is(Bug::half_reciprocal) ? s.acc[e] * round_to(ATTN_FP16, 1 / s.l) : divided ? s.acc[e] / s.l : s.acc[e];
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
  for (size_t s = 16; is(Bug::split_count_fixed) && s < lses.size(); ++s) {
    std::fill(os[s].begin(), os[s].end(), 0.0f);
    lses[s] = 0;
  }
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

}  // namespace attest::mutants
