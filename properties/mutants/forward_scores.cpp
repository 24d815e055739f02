// Where q, k and v stand, and what becomes of them: scores and weights.
#include <algorithm>

#include "properties/mutants/forward.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {

int64_t Forward::kv_head(int64_t h) const {
  if (is(Bug::gqa_modulo)) return h % Hkv;
  if (is(Bug::gqa_first_head)) return 0;
  return h / (Hq / Hkv);
}

int64_t Forward::k_offset(int64_t b, int64_t h, int64_t j, int64_t e) const {
  int64_t row = j * (is(Bug::row_stride_dense) ? dqk : p.k.stride[2]);
  if (is(Bug::offset_16_bit)) row &= 0xffff;
  return b * p.k.stride[0] + h * p.k.stride[1] + row + e * p.k.stride[3];
}

float Forward::value(int64_t b, int64_t h, int64_t j, int64_t e) const {
  if (is(Bug::head_stride_swapped)) std::swap(b, h);
  return load_at(p.v, offset(p.v, b, h, j, e));
}

float Forward::score(int64_t b, int64_t h, int64_t i, int64_t j) const {
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

float Forward::score_from_the_end(int64_t b, int64_t h, int64_t i, int64_t j) const {
  float x = 0;
  for (int64_t e = dqk; e-- > 0;) {
    x = std::fma(load_at(p.q, offset(p.q, b, h, i, e)), load_at(p.k, k_offset(b, kv_head(h), j, e)), x);
  }
  return x;
}

float Forward::weight(float x, float m) const {
  float z = (x - m) * scale;
  if (is(Bug::no_max_subtraction)) z = x * scale;
  float w = exp_f(z);
  if (is(Bug::fast_exp)) w *= 1 + 0x1p-11f * static_cast<float>(std::sin(static_cast<double>(z)));
  return w;
}

}  // namespace attest::mutants
