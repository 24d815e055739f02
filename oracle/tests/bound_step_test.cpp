// StepBound holds after every block, for l, acc, O and LSE, in fp32 and fp64, from empty and from given states.
#include <gtest/gtest.h>

#include <cstdio>

#include "oracle/tests/bound_setups.h"
#include "oracle/tests/bound_state_simulator.h"

namespace attest::bound_test {
namespace {

struct Worst {
  double l = 0, acc = 0, o = 0, lse = 0;
};

double over(Quad got, Quad want, double bound) {
  const double e = static_cast<double>(quad_abs(got - want));
  return e == 0 ? 0 : e / bound;
}

// How the scores of one fold are distributed.
double score(int family, std::int64_t j, std::int64_t n, Random& r) {
  switch (family) {
    case 0:
      return r.normal();
    case 1:
      return 1000 * r.signed_uniform();
    case 2:
      return 1000 + 1e-3 * r.normal();
    case 3:
      return 5.0 * static_cast<double>(j);  // rises at every key
    case 4:
      return -5.0 * static_cast<double>(j);  // falls, down to underflow
    case 5:
      return 3;  // equal
    case 6:
      return r.below(3) ? -HUGE_VAL : 20 * r.normal();  // mostly blocked
    case 7:
      return -6e4 - 100 * r.uniform();
    default:
      return static_cast<double>(j % 7 == 3) * 90.0 + r.normal() + 0.0 * static_cast<double>(n);
  }
}

template <class R>
void run(const char* name, const attn_contract& c, int rows) {
  const DType acc_format = dtype_of(c.acc_dtype), in = dtype_of(c.in_dtype);
  Worst worst;
  std::int64_t checked = 0;
  for (int row = 0; row < rows; ++row) {
    Random r(static_cast<std::uint64_t>(row) * 7 + 1);
    const std::int64_t n = 1 + r.below(64), d = 4, block = 1 + r.below(20);
    const int family = static_cast<int>(r.below(9)), values = static_cast<int>(r.below(4));
    Functions<R> f(c, static_cast<std::uint64_t>(row));
    State<R> s{-std::numeric_limits<R>::infinity(), 0, std::vector<R>(d, R(0))};
    if (r.below(3) == 0) {  // a state that something else left behind
      s.m = static_cast<R>(10 * r.normal());
      s.l = static_cast<R>(r.below(4) ? 0.5 + 3 * r.uniform() : 0);
      for (R& a : s.acc) a = static_cast<R>(r.normal());
    }
    State<Quad> exact{Quad(s.m), Quad(s.l), {}};
    std::vector<double> acc;
    for (const R a : s.acc) exact.acc.push_back(Quad(a)), acc.push_back(static_cast<double>(a));
    StepBound bound(c, static_cast<double>(s.m), static_cast<double>(s.l), acc);
    for (std::int64_t j = 0; j < n; j += block) {
      const std::int64_t count = std::min(block, n - j);
      std::vector<R> x;
      std::vector<double> scores;
      std::vector<std::vector<double>> v;
      std::vector<const double*> pointers;
      for (std::int64_t i = 0; i < count; ++i) {
        x.push_back(static_cast<R>(round_to(acc_format, score(family, j + i, n, r))));
        scores.push_back(static_cast<double>(x.back()));
        v.emplace_back();
        for (std::int64_t e = 0; e < d; ++e) {
          const double scale = values == 1 ? std::ldexp(1.0, facts(in).min_exponent - 3) : values == 2 ? 100 : 1;
          v.back().push_back(round_to(in, scale * (values == 3 ? 1 + 1.0 / 3 : r.normal())));
        }
      }
      for (const auto& y : v) pointers.push_back(y.data());
      bound.fold(scores, pointers);
      simulate_step(c, f, s, x, v);
      exact_step(exact, scores, v);
      const StateBound b = bound.state();
      const auto check = [&](const char* what, double q, double& most) {
        ++checked;
        ASSERT_LE(q, 1) << name << " " << what << " row " << row << " family " << family << " block " << block << " at "
                        << j;
        most = std::max(most, q);
      };
      ASSERT_EQ(Quad(s.m), exact.m);
      check("l", over(Quad(s.l), exact.l, b.l), worst.l);
      for (std::int64_t e = 0; e < d; ++e) check("acc", over(Quad(s.acc[e]), exact.acc[e], b.acc[e]), worst.acc);
      if (exact.m == Quad(-HUGE_VAL) || exact.l == 0) continue;
      const std::vector<double> o = bound.o();
      if (s.l == 0) {  // every weight underflowed below a maximum that was given without its key: 0 / 0
        ASSERT_EQ(o[0], HUGE_VAL);
        ASSERT_EQ(bound.lse(), HUGE_VAL);
        continue;
      }
      for (std::int64_t e = 0; e < d; ++e) {
        const R quotient = s.acc[e] / s.l;
        check("O", over(Quad(quotient), exact.acc[e] / exact.l, o[e]), worst.o);
      }
      const R log_l = f.log_of(s.l);
      const R base = c.exp_form == ATTN_EXP2_FMA ? s.m * (static_cast<R>(M_LOG2E) * static_cast<R>(M_LN2)) : s.m;
      const R lse = base + log_l;
      check("LSE", over(Quad(lse), exact.m + quad_log(exact.l), bound.lse()), worst.lse);
    }
  }
  std::printf("%-24s %ld checks; largest error/bound: l %.3f, acc %.3f, O %.3f, LSE %.3f\n", name,
              static_cast<long>(checked), worst.l, worst.acc, worst.o, worst.lse);
  EXPECT_GT(worst.l, 0.2) << "too loose to see a kernel";
  EXPECT_GT(worst.acc, 0.2) << "too loose to see a kernel";
}

TEST(BoundStep, HoldsAfterEveryBlock) {
  attn_contract c = contract_of(ATTN_ALG_STEP, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  run<float>("fp32", c, 3000);
  c.pv_accumulation = ATTN_ACC_MUL_ADD;
  run<float>("fp32 mul+add", c, 1000);
  c.sum_order = ATTN_SUM_ANY;
  run<float>("fp32 any order", c, 1000);
  c = contract_of(ATTN_ALG_STEP, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  c.exp_form = ATTN_EXP2_FMA;
  run<float>("fp32 exp2", c, 1500);
  c = contract_of(ATTN_ALG_STEP, ATTN_BF16, ATTN_FP32, ATTN_BF16);
  run<float>("bf16, P rounded", c, 1500);
  c = contract_of(ATTN_ALG_STEP, ATTN_FP16, ATTN_FP32, ATTN_FP16);
  run<float>("fp16, P rounded", c, 1500);
  c = contract_of(ATTN_ALG_STEP, ATTN_FP64, ATTN_FP64, ATTN_FP64);
  run<double>("fp64", c, 200);
}

TEST(BoundStep, NothingIsRoundedWhereNothingHappens) {
  const attn_contract c = contract_of(ATTN_ALG_STEP, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  const std::vector<double> acc{3, -1};
  StepBound bound(c, 2, 5, acc);
  const std::vector<double> blocked(4, -HUGE_VAL), v(2, 1.0);
  const std::vector<const double*> values(4, v.data());
  bound.fold(blocked, values);
  EXPECT_EQ(bound.state().l, 0);
  EXPECT_EQ(bound.state().acc, (std::vector<double>{0, 0}));
  // One key from the empty state: exp(0) = 1, 0 + 1 and fma(1, v, 0) are exact but for the floor and v's own rounding.
  StepBound one(c, -HUGE_VAL, 0, std::vector<double>{0, 0});
  one.fold(std::vector<double>{7}, std::vector<const double*>{v.data()});
  EXPECT_EQ(one.state().l, 0);
}

TEST(BoundStep, SumsThatMayOverflowAdmitAnything) {
  const attn_contract c = contract_of(ATTN_ALG_STEP, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  StepBound bound(c, -HUGE_VAL, 0, std::vector<double>{0, 0});
  const std::vector<double> v{3e38, 1};
  const std::vector<double> scores(2, 0.0);
  bound.fold(scores, std::vector<const double*>(2, v.data()));
  EXPECT_EQ(bound.state().acc[0], HUGE_VAL);
  EXPECT_LT(bound.state().acc[1], 1e-6);
  EXPECT_EQ(bound.o()[0], HUGE_VAL);
  // Rescaled to nothing, an infinite error stays infinite: inf * 0 is NaN in the kernel.
  bound.fold(std::vector<double>{1000}, std::vector<const double*>{v.data()});
  EXPECT_EQ(bound.state().acc[0], HUGE_VAL);
}

}  // namespace
}  // namespace attest::bound_test
