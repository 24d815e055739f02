#include "impl/core/online_softmax.h"
#include "impl/cpu/parallel.h"
#include "impl/cpu/row_ops.h"
#include "impl/cpu/state_ops.h"

namespace attn {

namespace {

constexpr Index keys_at_once = 256, columns_at_once = 64, rows_per_task = 16;

template <class T>
T& element(const attn_tensor& t, Index i) {
  return static_cast<T*>(t.data)[i * t.stride[0]];
}

// Scores of one row, keys_at_once at a time, on the stack.
template <class T>
struct ScoreChunk {
  T x[keys_at_once];
  Index n = 0;

  void load(const attn_tensor& scores, Index row, Index first, Index keys) {
    n = smaller(keys_at_once, keys - first);
    const T* from = static_cast<const T*>(scores.data) + row * scores.stride[0] + first * scores.stride[1];
    for (Index j = 0; j < n; ++j) x[j] = from[j * scores.stride[1]];
  }
};

// acc (in `out`, columns [e0, e0 + width)) += sum of p v over the chunk, key by key; blocked keys are passed over.
template <class F>
void add_columns(const attn_tensor& v, const attn_tensor& out, Index row, Index first, Index e0, Index width,
                 const typename F::Acc* p, const bool* blocked, Index n) {
  using Acc = typename F::Acc;
  Acc sum[columns_at_once];
  Acc* const at = static_cast<Acc*>(out.data) + row * out.stride[0] + e0 * out.stride[1];
  for (Index e = 0; e < width; ++e) sum[e] = at[e * out.stride[1]];
  for (Index j = 0; j < n; ++j) {
    if (blocked[j]) continue;
    const auto* value = static_cast<const typename F::Storage*>(v.data) + (first + j) * v.stride[0] + e0 * v.stride[1];
    if (v.stride[1] == 1) {
      for (Index e = 0; e < width; ++e) sum[e] = fused(p[j], convert<Acc>(value[e]), sum[e]);
    } else {
      for (Index e = 0; e < width; ++e) sum[e] = fused(p[j], convert<Acc>(value[e * v.stride[1]]), sum[e]);
    }
  }
  for (Index e = 0; e < width; ++e) at[e * out.stride[1]] = sum[e];
}

template <class F, std::int32_t Kind>
void step_row(const attn_problem& p, Index row) {
  using Acc = typename F::Acc;
  const Index keys = p.scores.shape[1];
  const Acc m_old = element<Acc>(p.a.m, row);
  ScoreChunk<Acc> chunk;
  Acc m = m_old;
  for (Index j = 0; j < keys; j += keys_at_once) {
    chunk.load(p.scores, row, j, keys);
    m = row_max(chunk.x, chunk.n, m);
  }
  const Acc factor = rescale_factor(m_old, m, Acc(1));
  Acc l = element<Acc>(p.a.l, row) * factor;
  const Index d_v = Kind == ATTN_STATE_MLA ? p.v.shape[1] : 0;
  const attn_tensor &old = p.a.acc, &out = p.out.acc;
  for (Index e = 0; e < d_v; ++e)
    static_cast<Acc*>(out.data)[row * out.stride[0] + e * out.stride[1]] =
        static_cast<const Acc*>(old.data)[row * old.stride[0] + e * old.stride[1]] * factor;
  for (Index j = 0; j < keys; j += keys_at_once) {
    chunk.load(p.scores, row, j, keys);
    bool blocked[keys_at_once];
    for (Index t = 0; t < chunk.n; ++t) blocked[t] = chunk.x[t] == neg_infinity<Acc>;
    row_weights(chunk.x, chunk.n, finite_max(m), Acc(1));
    for (Index t = 0; t < chunk.n; ++t) l += chunk.x[t];
    if constexpr (F::rounds_weights) round_row<typename F::Weight>(chunk.x, chunk.n);
    for (Index e = 0; e < d_v; e += columns_at_once)
      add_columns<F>(p.v, out, row, j, e, smaller(columns_at_once, d_v - e), chunk.x, blocked, chunk.n);
  }
  element<Acc>(p.out.m, row) = m;
  element<Acc>(p.out.l, row) = l;
}

}  // namespace

template <class F, std::int32_t Kind>
void Step<F, Kind>::compute(const attn_problem& p, void*) {
  const Index rows = p.scores.shape[0];
  parallel_for(smaller(p.tiling.threads, 256), ceil_div(rows, rows_per_task), [&](Index task, Index) {
    const IndexRange range = block_range({0, rows}, rows_per_task, task);
    for (Index row = range.begin; row < range.end; ++row) step_row<F, Kind>(p, row);
  });
}

template struct Step<Fp64, ATTN_STATE_ML>;
template struct Step<Fp32, ATTN_STATE_ML>;
template struct Step<Fp64, ATTN_STATE_MLA>;
template struct Step<Fp32, ATTN_STATE_MLA>;
template struct Step<Fp16P16, ATTN_STATE_MLA>;
template struct Step<Fp16P32, ATTN_STATE_MLA>;
template struct Step<Bf16P16, ATTN_STATE_MLA>;
template struct Step<Bf16P32, ATTN_STATE_MLA>;

}  // namespace attn
