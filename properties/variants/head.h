// One head of one batch entry as variants read it: dense copies in the accumulator format, and who sees whom.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "impl/attention.h"
#include "impl/contracts.h"
#include "impl/core/format.h"

namespace attest::variants {

template <class T>
T load(const attn_tensor& t, std::int64_t at) {
  switch (t.dtype) {
    case ATTN_FP64:
      return static_cast<T>(static_cast<const double*>(t.data)[at]);
    case ATTN_FP16:
      return attn::to_float(static_cast<const attn::Half*>(t.data)[at]);
    case ATTN_BF16:
      return attn::to_float(static_cast<const attn::Bfloat16*>(t.data)[at]);
    default:
      return static_cast<const float*>(t.data)[at];
  }
}

template <class T>
void store(const attn_tensor& t, std::int64_t at, T x) {
  switch (t.dtype) {
    case ATTN_FP64:
      static_cast<double*>(t.data)[at] = x;
      break;
    case ATTN_FP16:
      static_cast<attn::Half*>(t.data)[at] = attn::to_half(static_cast<float>(x));
      break;
    case ATTN_BF16:
      static_cast<attn::Bfloat16*>(t.data)[at] = attn::to_bfloat16(static_cast<float>(x));
      break;
    default:
      static_cast<float*>(t.data)[at] = static_cast<float>(x);
  }
}

// An element of P as the format of P holds it.
template <attn::ContractFormat format, class T>
T rounded_weight(T x) {
  if constexpr (format == attn::ContractFormat::fp16_p16) return attn::to_float(attn::to_half(x));
  if constexpr (format == attn::ContractFormat::bf16_p16) return attn::to_float(attn::to_bfloat16(x));
  return x;
}

inline std::int64_t offset(const attn_tensor& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
}

template <class T>
class Head {
 public:
  Head(const attn_problem& p, std::int64_t b, std::int64_t h) : problem(p), batch(b), head(h) {
    tq = p.q.shape[2], tk = p.k.shape[2], d_qk = p.q.shape[3], d_v = p.v.shape[3];
    const std::int64_t kv = h / (p.q.shape[1] / p.k.shape[1]);
    q = dense(p.q, h, tq, d_qk), k = dense(p.k, kv, tk, d_qk), v = dense(p.v, kv, tk, d_v);
  }

  bool visible(std::int64_t i, std::int64_t j) const {
    const attn_mask& m = problem.mask;
    const std::int64_t shift = m.causal == ATTN_CAUSAL_BOTTOM_RIGHT ? tk - tq : 0;
    if (m.causal != ATTN_CAUSAL_NONE && j > i + shift) return false;
    if (m.kv_len && j >= m.kv_len[batch]) return false;
    if (m.visible.data && !static_cast<const std::uint8_t*>(m.visible.data)[offset(m.visible, batch, head, i, j)])
      return false;
    return !m.additive.data || load<float>(m.additive, offset(m.additive, batch, head, i, j)) == 0;
  }

  const attn_problem& problem;
  std::int64_t batch, head, tq, tk, d_qk, d_v;
  std::vector<T> q, k, v;  // [rows, d]

 private:
  std::vector<T> dense(const attn_tensor& t, std::int64_t h, std::int64_t rows, std::int64_t d) const {
    std::vector<T> out(static_cast<std::size_t>(rows * d));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t e = 0; e < d; ++e)
        out[static_cast<std::size_t>(i * d + e)] = load<T>(t, offset(t, batch, h, i, e));
    return out;
  }
};

}  // namespace attest::variants
