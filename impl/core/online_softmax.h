// The algebra of the online softmax: the one place where running maxima, sums and weights are combined.
//
// A row of scores x is summarised by m = max x and l = sum exp(s (x - m)). A prefix of it is extended, or two parts are
// merged, by rescaling to the larger maximum (Milakov and Gimelshein, arXiv 1805.02867). The state of no keys is
// m = -inf, l = 0; in it -inf - -inf would be NaN, hence finite_max.
#pragma once

#include <limits>

#include "impl/core/exp.h"
#include "impl/core/host_device.h"

namespace attn {

template <class T>
inline constexpr T neg_infinity = -std::numeric_limits<T>::infinity();

// The larger; NaN if either is. A row that sees nothing but NaN must come out NaN, never as a row without keys.
template <class T>
ATTN_HOST_DEVICE constexpr T max_or_nan(T a, T b) {
  return ((a > b) | (a != a)) ? a : b;
}

// The maximum to subtract inside exponentials: 0 in place of -inf, so that every weight of an empty row is exp(-inf) =
// 0.
template <class T>
ATTN_HOST_DEVICE constexpr T finite_max(T m) {
  return m == neg_infinity<T> ? T(0) : m;
}

// exp(s (x - m)), the difference taken first: exactly 1 at x == m, and its error grows with the gap only.
// m is a finite_max.
template <class T>
ATTN_HOST_DEVICE inline T weight_of(T x, T m, T s) {
  return exp_of((x - m) * s);
}

// Factor for l and acc when the maximum moves from m_old to m_new; 0 when there was nothing yet.
template <class T>
ATTN_HOST_DEVICE inline T rescale_factor(T m_old, T m_new, T s) {
  return weight_of(m_old, finite_max(m_new), s);
}

// The same weight through exp2 and one fused multiply-add, for machines that have exp2 in hardware:
// exp(s (x - m)) = exp2(x c2 - m c2) with c2 = fl(s log2 e) and m c2 rounded once per row. m is a finite_max.
// The argument at x == m is the rounding error of m c2, not 0: the Contract's exp form says so (ATTN_EXP2_FMA).
ATTN_HOST_DEVICE inline float exp2_argument(float x, float c2, float m_c2) { return fused(x, c2, -m_c2); }

// Whether a state holds no key. NaN does not.
template <class T>
ATTN_HOST_DEVICE constexpr bool is_empty(T m) {
  return m == neg_infinity<T>;
}

// Weights of the two sides of a merge of states whose exponents m are already scaled. Swapping the sides swaps a and b.
// Merging with an empty side gives the other the weight exactly 1, and two empty sides weigh 0.
template <class T>
struct MergeWeights {
  T m, a, b;
};
template <class T>
ATTN_HOST_DEVICE inline MergeWeights<T> merge_weights(T m_a, T m_b) {
  const T m = max_or_nan(m_a, m_b);
  return {m, rescale_factor(m_a, m, T(1)), rescale_factor(m_b, m, T(1))};
}

// Weighted sum of the two sides, products rounded separately: symmetric in the sides, which an FMA would not be.
template <class T>
ATTN_HOST_DEVICE constexpr T merge_values(const MergeWeights<T>& w, T a, T b) {
  return a * w.a + b * w.b;
}

}  // namespace attn
