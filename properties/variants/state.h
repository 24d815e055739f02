// Steps and merges of states by a recipe.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "properties/variants/head.h"
#include "properties/variants/softmax.h"
#include "properties/variants/sums.h"

namespace attest::variants {

template <class T>
T entry(const attn_tensor& t, std::int64_t i, std::int64_t e = 0) {
  return load<T>(t, i * t.stride[0] + (t.rank > 1 ? e * t.stride[1] : 0));
}
template <class T>
void put(const attn_tensor& t, T x, std::int64_t i, std::int64_t e = 0) {
  store(t, i * t.stride[0] + (t.rank > 1 ? e * t.stride[1] : 0), x);
}

// The larger, or NaN if either is.
template <class T>
T larger_or_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}

// One block of scores and values added to (m, l) or (m, l, acc).
template <class T, Recipe r>
void run_step(const attn_problem& p) {
  const Softmax<T, r> softmax(1.0);  // scores come scaled
  const std::int64_t columns = p.state_kind == ATTN_STATE_ML ? 0 : p.v.shape[1];
  for (std::int64_t i = 0; i < p.scores.shape[0]; ++i) {
    std::vector<std::int64_t> keys;
    const T before = entry<T>(p.a.m, i);
    T m = before;
    for (std::int64_t j = 0; j < p.scores.shape[1]; ++j) {
      const T x = entry<T>(p.scores, i, j);
      if (x == -std::numeric_limits<T>::infinity()) continue;
      keys.push_back(j);
      m = larger_or_nan(m, x);
    }
    if constexpr (r.reversed) std::reverse(keys.begin(), keys.end());
    const bool empty = before == -std::numeric_limits<T>::infinity();
    const T factor = empty || m == before ? T(1) : softmax.rescale(before, m);
    std::vector<T> w, rounded;
    for (const std::int64_t j : keys) {
      w.push_back(softmax.weight(entry<T>(p.scores, i, j), m));
      rounded.push_back(rounded_weight<r.format>(w.back()));
    }
    put(p.out.m, m, i);
    Accumulator<T, r.pv> l(entry<T>(p.a.l, i) * factor);
    l.add(
        w.size(), [&](std::size_t t) { return w[t]; }, [](std::size_t) { return T(1); });
    put(p.out.l, l.value(), i);
    for (std::int64_t e = 0; e < columns; ++e) {
      Accumulator<T, r.pv> acc(entry<T>(p.a.acc, i, e) * factor);
      acc.add(
          w.size(), [&](std::size_t t) { return rounded[t]; },
          [&](std::size_t t) { return entry<T>(p.v, keys[t], e); });
      put(p.out.acc, acc.value(), i, e);
    }
  }
}

// Two states, (m, l, acc) or (O, LSE) with LSE in the place of m.
template <class T, Recipe r>
void run_merge(const attn_problem& p) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  const bool olse = p.state_kind == ATTN_STATE_OLSE;
  const std::int64_t columns = p.state_kind == ATTN_STATE_ML ? 0 : p.out.acc.shape[1];
  const auto sum_of_products = [](T a, T x, T b, T y) {
    if constexpr (r.pv == Sum::fma) return std::fma(a, x, b * y);
    const T first = a * x, second = b * y;
    return first + second;
  };
  for (std::int64_t i = 0; i < p.out.m.shape[0]; ++i) {
    const T ma = entry<T>(p.a.m, i), mb = entry<T>(p.b.m, i);
    if (ma == none || mb == none) {  // the other one as it is
      const attn_state& s = ma == none ? p.b : p.a;
      put(p.out.m, entry<T>(s.m, i), i);
      if (!olse) put(p.out.l, entry<T>(s.l, i), i);
      for (std::int64_t e = 0; e < columns; ++e) put(p.out.acc, entry<T>(s.acc, i, e), i, e);
      continue;
    }
    const T m = larger_or_nan(ma, mb);
    T wa = exp_of<r.exp>(ma - m), wb = exp_of<r.exp>(mb - m);
    const T l = olse ? wa + wb : sum_of_products(wa, entry<T>(p.a.l, i), wb, entry<T>(p.b.l, i));
    const T lse = m + log_of<r.exp>(l);
    put(p.out.m, olse ? lse : m, i);
    if (!olse) put(p.out.l, l, i);
    constexpr bool division_free = r.merge == ATTN_MERGE_DIVISION_FREE;
    if (olse && division_free) wa = exp_of<r.exp>(ma - lse), wb = exp_of<r.exp>(mb - lse);
    for (std::int64_t e = 0; e < columns; ++e) {
      const T x = sum_of_products(wa, entry<T>(p.a.acc, i, e), wb, entry<T>(p.b.acc, i, e));
      put(p.out.acc, olse && !division_free ? x / l : x, i, e);
    }
  }
}

}  // namespace attest::variants
