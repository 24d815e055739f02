// Hill climbing on tiny rows: values are searched for the largest error/bound. A derivation that forgets a rounding is
// found here first; a bound that no search comes near is too loose.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "oracle/tests/bound_families.h"
#include "oracle/tests/bound_setups.h"

namespace attest::bound_test {
namespace {

struct Ratios {
  double o = 0, lse = 0;
};

Ratios evaluate(const SimulatedKernel& s, const RowValues& x, Errors errors) {
  Ratios r;
  const Reference ref = reference(x, s.contract.acc_dtype == ATTN_FP64);
  const RowBound b = forward_bound(s.contract, s.plan(x.n), x.row(), ref.stats, s.out, false);
  const Output got = simulate(s, x, errors, 1);
  for (std::size_t e = 0; e < got.o.size(); ++e) {
    if (b.o[e].deterministic == HUGE_VAL) continue;
    const double error = static_cast<double>(quad_abs(got.o[e] - ref.o[e]));
    const double q = error == 0 ? 0 : error / b.o[e].deterministic;
    r.o = q > r.o || q != q ? q : r.o;
  }
  if (b.lse.deterministic < HUGE_VAL) r.lse = static_cast<double>(quad_abs(got.lse - ref.lse)) / b.lse.deterministic;
  return r;
}

void mutate(RowValues& x, DType in, Random& r) {
  const int changes = 1 + static_cast<int>(r.below(3));
  for (int i = 0; i < changes; ++i) {
    const std::int64_t what = r.below(4);
    double& p = what == 0   ? x.q[r.below(static_cast<std::int64_t>(x.q.size()))]
                : what == 1 ? x.v[r.below(static_cast<std::int64_t>(x.v.size()))]
                            : x.k[r.below(static_cast<std::int64_t>(x.k.size()))];
    const double how = r.uniform();
    if (how < 0.4)
      p *= 1 + facts(in).u * 2 * static_cast<double>(r.below(9) - 4);
    else if (how < 0.8)
      p *= 1 + 0.1 * r.normal();
    else
      p += 0.3 * r.normal();
    p = round_to(in, p);
    if (!std::isfinite(p)) p = 1;
  }
}

TEST(BoundAdversarial, NoSearchedRowLeavesItsBound) {
  const char* more = std::getenv("ATTEST_BOUND_CLIMB");
  const int iterations = more ? std::atoi(more) : 1000;
  double largest_o = 0, largest_lse = 0;
  for (SimulatedKernel s : make_setups()) {
    const bool wide = s.contract.acc_dtype == ATTN_FP64;
    double o = 0, lse = 0;
    for (const Kind kind : {Kind::gaussian, Kind::large, Kind::near_ties_high, Kind::far_values, Kind::vacuous}) {
      for (int start = 0; start < (wide ? 1 : 3); ++start) {
        Random r(static_cast<std::uint64_t>(start * 977 + static_cast<int>(kind)));
        const std::int64_t n = 1 + r.below(12), d = start == 2 ? 1 + r.below(8) : 1;
        s.block_k = 1 + r.below(4);
        s.keys_per_split = (n + s.splits - 1) / s.splits;
        const bool climb_lse = start == 1;
        RowValues x = make_row(kind, n, d, 1, s.in, s.block_k, r);
        Ratios best = evaluate(s, x, Errors::extreme);
        for (int i = 0; i < (wide ? iterations / 8 : iterations); ++i) {
          RowValues y = x;
          mutate(y, s.in, r);
          const Ratios now = evaluate(s, y, i % 3 ? Errors::extreme : Errors::random);
          ASSERT_TRUE(now.o <= 1 && now.lse <= 1) << s.name << " start " << start << " kind " << static_cast<int>(kind)
                                                  << " iteration " << i << ": O " << now.o << " LSE " << now.lse;
          o = std::max(o, now.o);
          lse = std::max(lse, now.lse);
          if (climb_lse ? now.lse >= best.lse : now.o >= best.o) {
            best = now;
            x = std::move(y);
          }
        }
      }
    }
    std::printf("%-32s climbed error/bound: O %.3f, LSE %.3f\n", s.name.c_str(), o, lse);
    largest_o = std::max(largest_o, o);
    largest_lse = std::max(largest_lse, lse);
  }
  // The climb is live: it comes near the bound somewhere.
  EXPECT_GT(largest_o, 0.6);
  EXPECT_GT(largest_lse, 0.4);
}

// Two keys, one product each: the maximum has the value 0, so that O is one far weight and its relative error has
// nothing to hide behind. Each form of the exp argument, each rescale and each merge weight stands nearly alone here.
TEST(BoundAdversarial, TwoKeysComeNearTheBound) {
  for (SimulatedKernel s : make_setups()) {
    if (s.in != DType::fp32 || s.contract.flushes_subnormals) continue;
    s.block_k = s.keys_per_split = 1;
    s.splits = std::min<std::int64_t>(s.splits, 2);
    double largest = 0, largest_lse = 0;
    for (int i = 0; i < 20000; ++i) {
      Random r(static_cast<std::uint64_t>(i));
      RowValues x;
      x.n = 2;
      x.d_qk = x.d_v = 1;
      x.scale = round_to(DType::fp32, 0.5 + r.uniform());
      const double shift = r.below(2) ? 0 : 80 * r.signed_uniform();
      const auto key = [&](double score) { return round_to(DType::fp32, score + r.signed_uniform()); };
      x.q = {round_to(DType::fp32, 1 + r.uniform())};
      x.k = {key(shift), key(shift - 40 - 20 * r.uniform())};
      x.v = {0, 1};
      if (r.below(2)) std::swap(x.k[0], x.k[1]), std::swap(x.v[0], x.v[1]);
      const Ratios now = evaluate(s, x, Errors::extreme);
      ASSERT_TRUE(now.o <= 1 && now.lse <= 1) << s.name << " row " << i << ": O " << now.o << " LSE " << now.lse;
      largest = std::max(largest, now.o);
      largest_lse = std::max(largest_lse, now.lse);
    }
    std::printf("%-32s two keys error/bound: O %.3f, LSE %.3f\n", s.name.c_str(), largest, largest_lse);
    // Errors of the constants log2 e and ln 2 are what they are: an exp2 kernel cannot use up what it is allowed.
    const bool exp2 = s.contract.exp_form == ATTN_EXP2_FMA;
    EXPECT_GT(largest, exp2 || !s.tell_cuts ? 0.2 : 0.45) << s.name;
  }
}

}  // namespace
}  // namespace attest::bound_test
