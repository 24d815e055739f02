#include "impl/cpu/row_ops.h"

#include "impl/core/online_softmax.h"

namespace attn {

template <int Rows, class T>
void score_rows(const T* __restrict q, Index d, const T* __restrict kt, Index ldk, Index n, T* __restrict s,
                Index lds) {
  for (int r = 0; r < Rows; ++r)
    for (Index j = 0; j < n; ++j) s[r * lds + j] = T(0);
  Index k = 0;
  for (; k + 4 <= d; k += 4) {
    const T* __restrict k0 = kt + k * ldk;
    const T* __restrict k1 = k0 + ldk;
    const T* __restrict k2 = k1 + ldk;
    const T* __restrict k3 = k2 + ldk;
    T w[Rows][4];
    for (int r = 0; r < Rows; ++r)
      for (int t = 0; t < 4; ++t) w[r][t] = q[r * d + k + t];
    for (Index j = 0; j < n; ++j) {
      for (int r = 0; r < Rows; ++r) {
        T x = s[r * lds + j];
        x = fused(w[r][0], k0[j], x);
        x = fused(w[r][1], k1[j], x);
        x = fused(w[r][2], k2[j], x);
        s[r * lds + j] = fused(w[r][3], k3[j], x);
      }
    }
  }
  for (; k < d; ++k)
    for (int r = 0; r < Rows; ++r)
      for (Index j = 0; j < n; ++j) s[r * lds + j] = fused(q[r * d + k], kt[k * ldk + j], s[r * lds + j]);
}

template <int Rows, class T>
void accumulate_values(const T* __restrict p, Index ldp, const T* __restrict v, Index n, Index dv, T* __restrict acc) {
  Index j = 0;
  for (; j + 4 <= n; j += 4) {
    const T* __restrict v0 = v + j * dv;
    const T* __restrict v1 = v0 + dv;
    const T* __restrict v2 = v1 + dv;
    const T* __restrict v3 = v2 + dv;
    T w[Rows][4];
    for (int r = 0; r < Rows; ++r)
      for (int t = 0; t < 4; ++t) w[r][t] = p[r * ldp + j + t];
    for (Index e = 0; e < dv; ++e) {
      for (int r = 0; r < Rows; ++r) {
        T a = acc[r * dv + e];
        a = fused(w[r][0], v0[e], a);
        a = fused(w[r][1], v1[e], a);
        a = fused(w[r][2], v2[e], a);
        acc[r * dv + e] = fused(w[r][3], v3[e], a);
      }
    }
  }
  for (; j < n; ++j)
    for (int r = 0; r < Rows; ++r)
      for (Index e = 0; e < dv; ++e) acc[r * dv + e] = fused(p[r * ldp + j], v[j * dv + e], acc[r * dv + e]);
}

template <class T>
T row_max(const T* __restrict x, Index n, T from) {
  constexpr int lanes = 64 / sizeof(T);
  T best[lanes];
  for (T& b : best) b = neg_infinity<T>;
  Index j = 0;
  for (; j + lanes <= n; j += lanes)
    for (int t = 0; t < lanes; ++t) best[t] = max_or_nan(best[t], x[j + t]);
  for (const T b : best) from = max_or_nan(from, b);
  for (; j < n; ++j) from = max_or_nan(from, x[j]);
  return from;
}

template <class T>
void row_weights(T* __restrict x, Index n, T m, T s) {
  for (Index j = 0; j < n; ++j) x[j] = weight_of(x[j], m, s);
}

template <class T>
void scale_row(T* __restrict x, Index n, T factor) {
  for (Index e = 0; e < n; ++e) x[e] *= factor;
}
template <class T>
void divide_row(T* __restrict x, Index n, T by) {
  for (Index e = 0; e < n; ++e) x[e] /= by;
}

template void score_rows<1>(const float*, Index, const float*, Index, Index, float*, Index);
template void score_rows<2>(const float*, Index, const float*, Index, Index, float*, Index);
template void accumulate_values<1>(const float*, Index, const float*, Index, Index, float*);
template void accumulate_values<2>(const float*, Index, const float*, Index, Index, float*);
template float row_max(const float*, Index, float);
template void row_weights(float*, Index, float, float);
template void scale_row(float*, Index, float);
template void divide_row(float*, Index, float);

template void score_rows<1>(const double*, Index, const double*, Index, Index, double*, Index);
template void score_rows<2>(const double*, Index, const double*, Index, Index, double*, Index);
template void accumulate_values<1>(const double*, Index, const double*, Index, Index, double*);
template void accumulate_values<2>(const double*, Index, const double*, Index, Index, double*);
template double row_max(const double*, Index, double);
template void row_weights(double*, Index, double, double);
template void scale_row(double*, Index, double);
template void divide_row(double*, Index, double);

}  // namespace attn
