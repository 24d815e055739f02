// Value families for the agreement tests: ordinary rows, and every way that rows are known to be hard.
#include <algorithm>

#include "oracle/tests/truth_support.h"

namespace attest::test {
namespace {

Inputs gaussian(Random& r, std::int64_t n, std::int64_t d, std::int64_t d_v) {
  Inputs in(n, d, d_v, 1 / std::sqrt(static_cast<double>(d)));
  for (auto* t : {&in.q, &in.k, &in.v})
    for (double& x : *t) x = r.normal();
  return in;
}

// Scores near `target(j)`: the last column of k carries the target, the others are noise that the dot product sums.
template <class F>
Inputs with_scores(Random& r, std::int64_t n, std::int64_t d, std::int64_t d_v, double noise, F target) {
  Inputs in = gaussian(r, n, d, d_v);
  in.scale = 1;
  for (double& x : in.q) x *= noise;
  in.q[d - 1] = 1;
  for (std::int64_t j = 0; j < n; ++j) in.k[j * d + d - 1] = target(j);
  return in;
}

Inputs with_v(Inputs in, const std::function<double(std::int64_t, std::int64_t)>& value) {
  for (std::int64_t j = 0; j < in.n; ++j)
    for (std::int64_t e = 0; e < in.d_v; ++e) in.v[j * in.d_v + e] = value(j, e);
  return in;
}

}  // namespace

const std::vector<Family>& families() {
  using I = std::int64_t;
  static const std::vector<Family> list = {
      {"gaussian", gaussian},
      {"swings of 1000",
       [](Random& r, I n, I d, I dv) {
         return with_scores(r, n, d, dv, 1, [](I j) { return j / 8 % 2 ? 1000.0 : -1000.0; });
       }},
      {"near ties at 1000",
       [](Random& r, I n, I d, I dv) {
         return with_scores(r, n, d, dv, 1e-8, [&](I) { return 1000 + 1e-9 * r.normal(); });
       }},
      {"large aligned scores",
       [](Random& r, I n, I d, I dv) {
         Inputs in = gaussian(r, n, d, dv);
         for (double& x : in.q) x *= 300;
         for (double& x : in.k) x *= 300;
         return in;
       }},
      {"ill-conditioned: cancelling products of 1e12",
       [](Random& r, I n, I d, I dv) {
         Inputs in = gaussian(r, n, d, dv);
         for (I i = 0; i + 1 < d; i += 2) {
           in.q[i] *= 1e6, in.q[i + 1] = -in.q[i];
           for (I j = 0; j < n; ++j) {
             in.k[j * d + i] *= 1e6;
             in.k[j * d + i + 1] = in.k[j * d + i] + r.normal() * 1e-6;
           }
         }
         return in;
       }},
      {"all about -6e4", [](Random& r, I n, I d, I dv) { return with_scores(r, n, d, dv, 1, [](I) { return -6e4; }); }},
      {"6e4 and -6e4",
       [](Random& r, I n, I d, I dv) { return with_scores(r, n, d, dv, 1, [](I j) { return j % 2 ? 6e4 : -6e4; }); }},
      {"1e5 near ties",
       [](Random& r, I n, I d, I dv) { return with_scores(r, n, d, dv, 1e-3, [&](I) { return 1e5 + r.uniform(); }); }},
      {"1e300", [](Random& r, I n, I d,
                   I dv) { return with_scores(r, n, d, dv, 1, [&](I) { return 1e300 * r.between(-1, 1); }); }},
      {"underflowing tail",
       [](Random& r, I n, I d, I dv) {
         return with_scores(r, n, d, dv, 1e-3,
                            [](I j) { return -700 - 60.0 * static_cast<double>(j % 3) + (j == 0) * 705; });
       }},
      {"equal scores", [](Random& r, I n, I d, I dv) { return with_scores(r, n, d, dv, 0, [](I) { return 0.1; }); }},
      {"cancelling V",
       [](Random& r, I n, I d, I dv) {
         return with_v(gaussian(r, n, d, dv), [&](I j, I) { return (j % 2 ? 1e8 : -1e8) * (1 + 1e-9 * r.normal()); });
       }},
      {"V = 100 + noise",
       [](Random& r, I n, I d, I dv) {
         return with_v(gaussian(r, n, d, dv), [&](I, I) { return 100 + 1e-6 * r.normal(); });
       }},
      {"constant V", [](Random& r, I n, I d, I dv) { return with_v(gaussian(r, n, d, dv), [](I, I) { return 0.1; }); }},
      {"subnormal V",
       [](Random& r, I n, I d, I dv) {
         return with_v(gaussian(r, n, d, dv),
                       [&](I, I) { return static_cast<double>(r.below(1000) - 500) * 0x1p-1074; });
       }},
      {"wide-range V",
       [](Random& r, I n, I d, I dv) {
         return with_v(gaussian(r, n, d, dv),
                       [&](I, I) { return std::ldexp(r.normal(), static_cast<int>(r.below(2000)) - 1000); });
       }},
      {"one-hot V, needle",
       [](Random& r, I n, I d, I dv) {
         return with_v(with_scores(r, n, d, dv, 0.01, [&](I j) { return j == n / 2 ? 40.0 : 0.0; }),
                       [](I j, I e) { return j % 7 == e % 7 ? 1.0 : 0.0; });
       }},
      {"subnormal q and k",
       [](Random& r, I n, I d, I dv) {
         Inputs in = gaussian(r, n, d, dv);
         for (double& x : in.q) x = static_cast<double>(r.below(1000)) * 0x1p-1074;
         return in;
       }},
  };
  return list;
}

}  // namespace attest::test
