#include "impl/core/online_softmax.h"
#include "impl/cpu/row_ops.h"
#include "impl/cpu/state_ops.h"

namespace attn {

namespace {

template <class T>
T& element(const attn_tensor& t, Index i) {
  return static_cast<T*>(t.data)[i * t.stride[0]];
}
template <class T>
T* row_of(const attn_tensor& t, Index i) {
  return static_cast<T*>(t.data) + i * t.stride[0];
}

// An empty side weighs exactly 0 and the other exactly 1, so that x 1 + 0 0 = x: the identity of merge needs no branch,
// and a NaN in either side is never passed over. Two empties weigh 0 and there is nothing to divide by.
template <class T, std::int32_t Kind>
void merge_row(const attn_problem& p, Index row, Index d_v) {
  const T m_a = element<T>(p.a.m, row), m_b = element<T>(p.b.m, row);
  const MergeWeights<T> w = merge_weights(m_a, m_b);
  T total = 0;
  if constexpr (Kind == ATTN_STATE_OLSE) {
    total = w.a + w.b;
    element<T>(p.out.m, row) = w.m + log_of(total);
  } else {
    element<T>(p.out.m, row) = w.m;
    element<T>(p.out.l, row) = merge_values(w, element<T>(p.a.l, row), element<T>(p.b.l, row));
  }
  if constexpr (Kind == ATTN_STATE_ML) return;
  const T divisor = is_empty(w.m) ? T(1) : total;
  const T *a = row_of<T>(p.a.acc, row), *b = row_of<T>(p.b.acc, row);
  T* out = row_of<T>(p.out.acc, row);
  for (Index e = 0; e < d_v; ++e) {
    T value = merge_values(w, a[e * p.a.acc.stride[1]], b[e * p.b.acc.stride[1]]);
    if constexpr (Kind == ATTN_STATE_OLSE) value /= divisor;
    out[e * p.out.acc.stride[1]] = value;
  }
}

}  // namespace

template <class F, std::int32_t Kind>
void Merge<F, Kind>::compute(const attn_problem& p, void*) {
  const Index d_v = Kind == ATTN_STATE_ML ? 0 : p.out.acc.shape[1];
  for (Index row = 0; row < p.out.m.shape[0]; ++row) merge_row<typename F::Acc, Kind>(p, row, d_v);
}

template struct Merge<Fp64, ATTN_STATE_ML>;
template struct Merge<Fp32, ATTN_STATE_ML>;
template struct Merge<Fp64, ATTN_STATE_MLA>;
template struct Merge<Fp32, ATTN_STATE_MLA>;
template struct Merge<Fp64, ATTN_STATE_OLSE>;
template struct Merge<Fp32, ATTN_STATE_OLSE>;

}  // namespace attn
