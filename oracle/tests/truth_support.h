// Rows made by hand for the tests of the truth, and a small generator of values that uses nothing of the project.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oracle/truth.h"

namespace attest::test {

inline constexpr Tier all_tiers[] = {Tier::fp64, Tier::double_double, Tier::exact128, Tier::exact256, Tier::exact512};
inline constexpr Tier fast_tiers[] = {Tier::fp64, Tier::double_double};
inline const char* name(Tier t) {
  constexpr const char* names[] = {"fp64", "double_double", "exact128", "exact256", "exact512"};
  return names[static_cast<int>(t)];
}

// splitmix64 (Steele, Lea, Flood 2014) and Box-Muller: deterministic for one libm, which is enough here.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double a, double b) { return a + (b - a) * uniform(); }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform()); }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }

 private:
  std::uint64_t state_;
};

// Owns what a Row points to. Fill q, k, v (row-major), then call row().
struct Inputs {
  std::int64_t n = 0, d_qk = 0, d_v = 0;
  double scale = 1;
  std::vector<double> q, k, v;

  Inputs(std::int64_t keys, std::int64_t d, std::int64_t dv, double s = 1)
      : n(keys), d_qk(d), d_v(dv), scale(s), q(d, 0.0), k(keys * d, 0.0), v(keys * dv, 0.0) {}

  Row row() const { return row(0, n); }
  Row row(std::int64_t begin, std::int64_t end) const {  // the keys begin ... end - 1 alone
    Row r;
    r.tk = n, r.d_qk = d_qk, r.d_v = d_v, r.scale = scale, r.q = q.data();
    for (std::int64_t j = begin; j < end; ++j) {
      r.key.push_back(j);
      r.k.push_back(k.data() + j * d_qk);
      r.v.push_back(v.data() + j * d_v);
    }
    return r;
  }
};

// One key dimension, q = 1: scores are what is written here.
inline Inputs from_scores(const std::vector<double>& scores, std::int64_t d_v) {
  Inputs in(static_cast<std::int64_t>(scores.size()), 1, d_v);
  in.q[0] = 1;
  in.k = scores;
  return in;
}

inline RowTruth truth(const Row& row, Tier tier) { return row_truth(row, RowStats{}, tier); }

// |a - b| <= radius_a + radius_b, in long double: hi and lo differ by up to 2^53, their differences are small.
inline double distance(const TruthElement& a, const TruthElement& b) {
  const long double high = static_cast<long double>(a.hi) - b.hi, low = static_cast<long double>(a.lo) - b.lo;
  return static_cast<double>(std::fabs(high + low));
}
inline bool overlap(const TruthElement& a, const TruthElement& b) {
  return a.kind == b.kind && distance(a, b) <= (a.radius + b.radius) * (1 + 0x1p-40);
}

// A value family: name and generator of one row.
struct Family {
  std::string name;
  std::function<Inputs(Random&, std::int64_t n, std::int64_t d, std::int64_t d_v)> make;
};
const std::vector<Family>& families();

}  // namespace attest::test
