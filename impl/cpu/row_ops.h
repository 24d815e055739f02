// Loops over contiguous rows: the only hot code. Each is written so that the compiler vectorises it, and each fixes the
// order of roundings per output element, so that vector width, unrolling and threads change no bit. They know the
// accumulator's format alone, and are compiled once for each (row_ops.cpp).
#pragma once

#include <cmath>

#include "impl/core/format.h"
#include "impl/core/tile_schedule.h"

namespace attn {

// s[r][j] = sum_k q[r][k] kt[k][j], one FMA chain per element in increasing k. q is [Rows][d], kt is [d][ldk].
template <int Rows, class T>
void score_rows(const T* __restrict q, Index d, const T* __restrict kt, Index ldk, Index n, T* __restrict s, Index lds);

// acc[r][e] += sum_j p[r][j] v[j][e], one FMA chain per element in increasing j. v is [n][dv], acc is [Rows][dv].
template <int Rows, class T>
void accumulate_values(const T* __restrict p, Index ldp, const T* __restrict v, Index n, Index dv, T* __restrict acc);

// Largest of n values and `from`; NaN if any is.
template <class T>
T row_max(const T* __restrict x, Index n, T from);

// x[j] <- exp(s (x[j] - m)); m is a finite_max.
template <class T>
void row_weights(T* __restrict x, Index n, T m, T s);

// x[j] <- x[j] rounded to the format W.
template <class W, class T>
inline void round_row(T* __restrict x, Index n) {
  for (Index j = 0; j < n; ++j) x[j] = convert<T>(convert<W>(x[j]));
}

template <class T>
void scale_row(T* __restrict x, Index n, T factor);
template <class T>
void divide_row(T* __restrict x, Index n, T by);

// Natural log. fp64: glibc's. fp32: that of fp64 rounded once, so within u (1 + 2^-28) of the truth.
inline double log_of(double x) { return std::log(x); }
inline float log_of(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }

}  // namespace attn
