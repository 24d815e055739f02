// Value families for the tests of bounds: the patterns that are known to break loose derivations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "oracle/tests/bound_simulator.h"

namespace attest::bound_test {

enum class Kind {
  gaussian,
  large,
  near_ties_high,
  vacuous,
  needle,
  two_level,
  near_duplicates,
  value_offset,
  outliers,
  wide_values,
  ascending,
  ascending_steep,
  descending,
  equal_constant,
  equal_random,
  subnormal_values,
  subnormal_keys,
  very_negative,
  one_hot,
  cancelling,
  swings,
  one_key,
  far_values
};
inline constexpr Kind all_kinds[] = {
    Kind::gaussian,         Kind::large,           Kind::near_ties_high, Kind::vacuous,        Kind::needle,
    Kind::two_level,        Kind::near_duplicates, Kind::value_offset,   Kind::outliers,       Kind::wide_values,
    Kind::ascending,        Kind::ascending_steep, Kind::descending,     Kind::equal_constant, Kind::equal_random,
    Kind::subnormal_values, Kind::subnormal_keys,  Kind::very_negative,  Kind::one_hot,        Kind::cancelling,
    Kind::swings,           Kind::one_key,         Kind::far_values};

namespace detail {

inline double dot(const RowValues& x, std::int64_t j) {
  double s = 0;
  for (std::int64_t i = 0; i < x.d_qk; ++i) s += x.q[i] * x.k[j * x.d_qk + i];
  return s;
}

// Makes scale * q.k_j about `target` by adding a multiple of q.
inline void aim(RowValues& x, std::int64_t j, double target) {
  double norm = 0;
  for (const double v : x.q) norm += v * v;
  const double step = (target / x.scale - dot(x, j)) / norm;
  for (std::int64_t i = 0; i < x.d_qk; ++i) x.k[j * x.d_qk + i] += step * x.q[i];
}

inline void copy_key(RowValues& x, std::int64_t from, std::int64_t to) {
  std::copy_n(x.k.begin() + from * x.d_qk, x.d_qk, x.k.begin() + to * x.d_qk);
}

inline void sort_keys(RowValues& x, bool ascending) {
  std::vector<std::int64_t> order(x.n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return dot(x, a) < dot(x, b); });
  if (!ascending) std::reverse(order.begin(), order.end());
  const std::vector<double> k = x.k;
  for (std::int64_t j = 0; j < x.n; ++j) std::copy_n(k.begin() + order[j] * x.d_qk, x.d_qk, x.k.begin() + j * x.d_qk);
}

}  // namespace detail

inline RowValues make_row(Kind kind, std::int64_t n, std::int64_t d, std::int64_t d_v, DType in, std::int64_t block_k,
                          Random& r) {
  RowValues x;
  if (kind == Kind::one_key) n = 1;
  x.n = n;
  x.d_qk = d;
  x.d_v = d_v;
  x.scale = round_to(DType::fp32, 1 / std::sqrt(static_cast<double>(d)));
  x.q.resize(d);
  x.k.resize(n * d);
  x.v.resize(n * d_v);
  for (double& v : x.q) v = r.normal();
  for (double& v : x.k) v = r.normal();
  for (double& v : x.v) v = r.normal();
  const FormatFacts f = facts(in);
  const double base = 2 * r.signed_uniform();
  // Score errors of about 1: from a weight error worth the box form to one that leaves only the hull.
  const double huge = std::pow(10, (in == DType::fp64 ? 13 : in == DType::fp16 ? 3 : 5) + 2.5 * r.uniform());
  // A quarter of the far rows lie where exp underflows.
  const double edge = in == DType::fp64 ? 735 : 95,
               far = r.below(4) == 0 ? edge + 8 * r.uniform() : 2 + 85 * r.uniform();
  if (kind == Kind::far_values) x.scale = round_to(DType::fp32, 0.5 + r.uniform());
  for (std::int64_t j = 0; j < n; ++j) {
    switch (kind) {
      case Kind::near_ties_high:
        detail::aim(x, j, 1000 + 0.5 * r.normal());
        break;
      case Kind::vacuous:
        detail::aim(x, j, huge + 0.1 * r.normal());
        break;
      // Everything that O consists of lies far below a maximum with the value 0: relative errors of weights, alone.
      case Kind::far_values:
        detail::aim(x, j, (j == n / 2 ? 0.0 : -far - 0.1 * r.uniform()) + base);
        break;
      case Kind::needle:
        if (j == n / 3) detail::aim(x, j, 12);
        break;
      case Kind::two_level:
        if (j > 0) detail::copy_key(x, 0, j);
        if (j == n / 2) detail::aim(x, j, base + 4 * r.uniform() * std::log(n + 1.0));
        break;
      case Kind::near_duplicates:
        if (j > 0) detail::copy_key(x, 0, j);
        x.k[j * d + r.below(d)] *= 1 + f.u * 2 * static_cast<double>(r.below(3) - 1);
        break;
      case Kind::ascending_steep:
        detail::aim(x, j, 40.0 * static_cast<double>(j) / static_cast<double>(block_k));
        break;
      case Kind::equal_constant:
      case Kind::equal_random:
        if (j > 0) detail::copy_key(x, 0, j);
        break;
      case Kind::very_negative:
        detail::aim(x, j, -6e4 / 8 - 30 * r.uniform());
        break;
      case Kind::swings:
        detail::aim(x, j, (j / block_k) % 2 ? 1000 + r.normal() : -1000 + r.normal());
        break;
      case Kind::subnormal_keys:
        for (std::int64_t i = 0; i < d; ++i)
          x.k[j * d + i] = std::ldexp(r.normal(), in == DType::fp64 ? -1060 : in == DType::fp16 ? -20 : -135);
        break;
      default:
        break;
    }
  }
  for (double& v : x.v) {
    switch (kind) {
      case Kind::two_level:
      case Kind::near_duplicates:
        v = 1 + 0.1 * r.uniform();
        break;
      case Kind::value_offset:
        v = 100 + r.normal();
        break;
      case Kind::wide_values:
        v = std::ldexp(r.normal(), static_cast<int>(r.below(21)) - 10);
        break;
      case Kind::equal_constant:
        v = 1 + static_cast<double>((&v - x.v.data()) % d_v + 1) / 11;
        break;
      case Kind::subnormal_values:
        v = std::ldexp(r.normal(), f.min_exponent - f.precision + 4);
        break;
      case Kind::one_hot:
        v = 0;
        break;
      case Kind::cancelling:
        v = (r.below(2) ? 1 : -1) * (1000 + r.uniform());
        break;
      default:
        break;
    }
  }
  if (kind == Kind::one_hot)
    for (std::int64_t e = 0; e < d_v; ++e) x.v[(e * n / d_v) * d_v + e] = 1;
  if (kind == Kind::equal_constant)
    for (std::int64_t j = 1; j < n; ++j) detail::copy_key(x, 0, j);
  if (kind == Kind::far_values) {
    const double scale = std::ldexp(1.0, static_cast<int>(r.below(in == DType::fp16 ? 14 : 100)));
    for (double& v : x.v) v *= scale;
    std::fill_n(x.v.begin() + n / 2 * d_v, d_v, 0.0);
  }
  if (kind == Kind::large)
    for (double& v : x.q) v *= 330;
  if (kind == Kind::outliers) {
    for (auto* t : {&x.q, &x.k, &x.v})
      for (double& v : *t)
        if (r.below(64) == 0) v += 10 * r.normal();
  }
  if (kind == Kind::subnormal_keys)
    x.scale = std::ldexp(x.scale, in == DType::fp64 ? 1018 : in == DType::fp16 ? 18 : 120);
  for (auto* t : {&x.q, &x.k, &x.v})
    for (double& v : *t) {
      v = round_to(in, v);
      if (!std::isfinite(v)) v = std::copysign(f.max, v) / 2;
    }
  if (kind == Kind::ascending) detail::sort_keys(x, true);
  if (kind == Kind::descending) detail::sort_keys(x, false);
  return x;
}

}  // namespace attest::bound_test
