// The readable step and merge kernels, with planted bugs.
#include <algorithm>
#include <limits>
#include <vector>

#include "properties/mutants/bug.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504f;

float at1(const attn_tensor& t, int64_t i) { return load_at(t, i * t.stride[0]); }
float at2(const attn_tensor& t, int64_t i, int64_t e) { return load_at(t, i * t.stride[0] + e * t.stride[1]); }
void put1(const attn_tensor& t, int64_t i, float x) { store_at(t, i * t.stride[0], x); }
void put2(const attn_tensor& t, int64_t i, int64_t e, float x) { store_at(t, i * t.stride[0] + e * t.stride[1], x); }

// Maximum that keeps a NaN.
float max_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? std::nanf("") : std::max(a, b); }

}  // namespace

int32_t run_step(Bug bug, const attn_problem& p) {
  const auto is = [bug](Bug b) { return bug == b; };
  const int64_t rows = p.scores.shape[0], width = p.state_kind == ATTN_STATE_ML ? 0 : p.v.shape[1];
  const int64_t keys = p.scores.shape[1] - (is(Bug::step_drops_last_key) && p.scores.shape[1] > 3);
  for (int64_t i = 0; i < rows; ++i) {
    const float m0 = at1(p.a.m, i);
    float m = is(Bug::step_max_not_kept) ? -kInf : m0;
    bool masked = keys > 0;
    for (int64_t j = 0; j < keys; ++j) m = max_nan(m, at2(p.scores, i, j)), masked &= at2(p.scores, i, j) == -kInf;
    const int64_t whole = (keys + 3) / 4 * 4;
    for (int64_t j = keys;
         is(Bug::step_max_of_whole_vectors) && j < whole && j * p.scores.stride[1] < p.scores.stride[0]; ++j)
      m = std::fmax(m, at2(p.scores, i, j));
    if (is(Bug::step_max_not_kept) && m == -kInf) m = m0;
    const float safe = m == -kInf && !is(Bug::step_no_guard) ? 0 : m;
    float c = exp_f(m0 - safe);
    if (is(Bug::step_masked_block_rescales) && masked && i % 4 == 3) c *= 1 - 0x1p-24f;
    float l = at1(p.a.l, i) * (is(Bug::step_sum_not_rescaled) ? 1 : c);
    std::vector<float> acc(static_cast<size_t>(width));
    for (int64_t e = 0; e < width; ++e) acc[e] = at2(p.a.acc, i, e) * (is(Bug::step_acc_not_rescaled) ? 1 : c);
    for (int64_t j = 0; j < keys; ++j) {
      if (at2(p.scores, i, j) == -kInf && !is(Bug::step_no_guard)) continue;
      float z = at2(p.scores, i, j) - safe;
      if (is(Bug::step_rounded_product)) z = (at2(p.scores, i, j) * kLog2e - safe * kLog2e) / kLog2e;
      const float w = is(Bug::step_exponent_16_bit) ? exp_with_16_bit_exponent(z) : exp_f(z);
      l += w;
      for (int64_t e = 0; e < width; ++e) acc[e] = std::fma(w, at2(p.v, j, e), acc[e]);
    }
    put1(p.out.m, i, m);
    put1(p.out.l, i, l);
    for (int64_t e = 0; e < width; ++e) put2(p.out.acc, i, e, acc[e]);
  }
  return ATTN_OK;
}

int32_t run_merge(Bug bug, const attn_problem& p) {
  const auto is = [bug](Bug b) { return bug == b; };
  const bool olse = p.state_kind == ATTN_STATE_OLSE;
  const int64_t rows = p.out.m.shape[0], width = p.state_kind == ATTN_STATE_ML ? 0 : p.out.acc.shape[1];
  const auto maximum = [&](const attn_state& s, int64_t i) {
    const float m = at1(s.m, i);
    return is(Bug::merge_nan_is_empty) && !(m > -kInf) ? -kInf : m;
  };
  const auto sum_of = [&](const attn_state& s, int64_t i) {
    if (olse) return maximum(s, i) == -kInf ? 0.0f : 1.0f;
    const float l = at1(s.l, i);
    return is(Bug::merge_clips_sum) && l > 32 ? 32 : l;
  };
  for (int64_t i = 0; i < rows; ++i) {
    if (is(Bug::merge_skips_empty_block) && i % 8 == 0 && i + 8 <= rows) {
      bool none = true;
      for (int64_t r = i; r < i + 8; ++r) none &= at1(p.b.m, r) == -kInf;
      if (none) {
        i += 7;
        continue;
      }
    }
    const float m1 = maximum(p.a, i), m2 = maximum(p.b, i), l1 = sum_of(p.a, i), l2 = sum_of(p.b, i);
    const float m = is(Bug::merge_far_overflow) ? 0 : max_nan(m1, m2);
    const bool empty = m == -kInf && !is(Bug::merge_empty_nan);
    const auto weight = [&](float x) {
      const float z = is(Bug::merge_base_2) ? (x - m) * 0.693147181f : x - m;
      return empty ? 0.0f : exp_f(z);
    };
    float w1 = weight(m1), w2 = weight(m2);
    if (is(Bug::merge_weights_swapped)) std::swap(w1, w2);
    if (is(Bug::merge_empty_rescales) && (m1 == -kInf || m2 == -kInf)) w1 *= 1 - 0x1p-24f, w2 *= 1 - 0x1p-24f;
    const float part2 = is(Bug::merge_counts_once) ? l2 : w2 * l2;
    const float sum = is(Bug::merge_by_fma) ? std::fma(w1, l1, part2) : w1 * l1 + part2;
    const bool one_empty = (m1 == -kInf) != (m2 == -kInf);
    for (int64_t e = 0; e < width; ++e) {
      const float a = at2(p.a.acc, i, e), b = at2(p.b.acc, i, e);
      float x = is(Bug::merge_by_fma) ? std::fma(w1, a, w2 * b) : w1 * a + w2 * b;
      if (olse && !empty && !one_empty) x /= sum;
      if (one_empty && !is(Bug::merge_empty_rescales)) x = m1 == -kInf ? b : a;
      put2(p.out.acc, i, e, empty ? 0 : x);
    }
    if (olse) {
      put1(p.out.m, i, empty || (one_empty && !is(Bug::merge_far_overflow)) ? m : m + log_f(sum));
    } else {
      put1(p.out.m, i, is(Bug::merge_far_overflow) ? max_nan(m1, m2) : m);
      put1(p.out.l, i, sum);
    }
  }
  return ATTN_OK;
}

}  // namespace attest::mutants
