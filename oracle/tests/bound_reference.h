// A reference for the tests of bounds, apart from the oracle: the definition of attention, in binary128 with exp and
// log of its own (good to about 2^-108) for fp64 kernels, and in the 64-bit significand of x87 for fp32 kernels (about
// 2^-56 of the row's magnitudes, still 2^-30 of any bound that is tested against it).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "oracle/row.h"

namespace attest::bound_test {

using Quad = __float128;

inline Quad power_of_two(int e) {
  return e >= -1022 ? Quad(std::ldexp(1.0, e)) : Quad(std::ldexp(1.0, e + 600)) * 0x1p-600;
}

inline Quad quad_abs(Quad x) { return x < 0 ? -x : x; }

// exp by reduction modulo ln 2, a Taylor series on 1/128 of the rest, and seven squarings.
inline Quad quad_exp(Quad x) {
  if (x < Quad(-11000)) return 0;
  const Quad ln2 = Quad(0x1.62e42fefa39efp-1) + Quad(0x1.abc9e3b39803fp-56) + Quad(0x1.7b57a079a1934p-111);
  const int k = static_cast<int>(std::nearbyint(static_cast<double>(x) * M_LOG2E));
  const Quad r = (x - Quad(k) * ln2) / 128;
  Quad term = r, sum = r;  // exp(r) - 1
  for (int i = 2; i < 17; ++i) sum += term = term * r / i;
  for (int i = 0; i < 7; ++i) sum = sum * (sum + 2);
  Quad y = sum + 1;
  for (int left = k; left != 0;) {
    const int part = left < -900 ? -900 : left > 900 ? 900 : left;
    y *= Quad(std::ldexp(1.0, part));
    left -= part;
  }
  return y;
}

inline Quad quad_log(Quad x) {
  Quad y = std::log(static_cast<double>(x));
  for (int i = 0; i < 3; ++i) {
    const Quad e = quad_exp(y);
    y += 2 * (x - e) / (x + e);
  }
  return y;
}

// What a reference is computed in.
inline Quad wide_exp(Quad x) { return quad_exp(x); }
inline Quad wide_log(Quad x) { return quad_log(x); }
inline long double wide_exp(long double x) { return std::exp(x); }
inline long double wide_log(long double x) { return std::log(x); }

struct Reference {
  std::vector<Quad> o;
  Quad lse = 0;
  RowStats stats;
};

// RowValues of a row, owned; Row points into them. d_qk = q.size().
struct RowValues {
  std::int64_t n = 0, d_qk = 0, d_v = 0, tk = 0;
  double scale = 1;
  std::vector<double> q, k, v;
  std::vector<std::int64_t> key;  // empty: 0 .. n-1
  Row row() const {
    Row r;
    r.tk = tk > 0 ? tk : n;
    r.d_qk = d_qk;
    r.d_v = d_v;
    r.scale = scale;
    r.q = q.data();
    for (std::int64_t j = 0; j < n; ++j) {
      r.key.push_back(key.empty() ? j : key[j]);
      r.k.push_back(k.data() + j * d_qk);
      r.v.push_back(v.data() + j * d_v);
    }
    return r;
  }
};

template <class Wide>
Reference reference_in(const RowValues& x) {
  Reference r;
  const std::int64_t n = x.n, d = x.d_qk;
  std::vector<Wide> score(n), w(n), o(x.d_v, Wide(0));
  Wide m = -HUGE_VAL, sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    Wide dot = 0, magnitude = 0;
    for (std::int64_t i = 0; i < d; ++i) {
      const Wide p = Wide(x.q[i]) * Wide(x.k[j * d + i]);
      dot += p;
      magnitude += p < 0 ? -p : p;
    }
    score[j] = dot;
    r.stats.x.push_back(static_cast<double>(dot));
    r.stats.A.push_back(static_cast<double>(magnitude));
    if (dot > m) m = dot;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const Wide gap = Wide(x.scale) * (m - score[j]);
    w[j] = wide_exp(-gap);
    sum += w[j];
    r.stats.gap.push_back(static_cast<double>(gap));
    r.stats.w.push_back(static_cast<double>(w[j]));
    if (w[j] == 0) continue;
    for (std::int64_t e = 0; e < x.d_v; ++e) o[e] += w[j] * Wide(x.v[j * x.d_v + e]);
  }
  const Wide lse = Wide(x.scale) * m + wide_log(sum);
  r.lse = lse;
  r.stats.m = static_cast<double>(m);
  r.stats.W = static_cast<double>(sum);
  r.stats.lse = static_cast<double>(lse);
  for (const Wide& v : o) {
    r.o.push_back(v / sum);
    r.stats.o.push_back(static_cast<double>(r.o.back()));
  }
  return r;
}

inline Reference reference(const RowValues& x, bool fp64) {
  return fp64 ? reference_in<Quad>(x) : reference_in<long double>(x);
}

}  // namespace attest::bound_test
