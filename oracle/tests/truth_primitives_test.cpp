// Claims: the error-free transformations are exact; exp_dd and log_dd keep their declared errors; the exp and log of
// this C library stay within the ulp that the fp64 tier budgets (a sample: a lower bound of the worst); the small
// functions of the radius never give NaN.
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "oracle/double_double.h"
#include "oracle/softmax_tier.h"
#include "oracle/tests/truth_known.h"

namespace attest::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Known exact(DoubleDouble x) { return Known(x.hi) + Known(x.lo); }
double relative_error(DoubleDouble got, const Known& want) {
  return static_cast<double>(Known(abs(exact(got) - want) / abs(want)));
}

TEST(DoubleDouble, SumsAndProductsAreWithinTheirBounds) {
  constexpr double u2 = 0x1p-106;
  Random r(11);
  for (int i = 0; i < 20000; ++i) {
    const double a = std::ldexp(r.normal(), static_cast<int>(r.below(60))), b = r.normal();
    ASSERT_EQ(exact(two_sum(a, b)), Known(a) + Known(b));
    ASSERT_EQ(exact(two_prod(a, b)), Known(a) * Known(b));
    const DoubleDouble x = two_sum(a, r.normal() * 0x1p-54 * a), y = two_sum(i % 3 ? b : -a, r.normal() * 0x1p-56 * b);
    ASSERT_LE(relative_error(add(x, y), exact(x) + exact(y)), 3.001 * u2);
    ASSERT_LE(relative_error(add(x, b), exact(x) + Known(b)), 2.001 * u2);
    ASSERT_LE(relative_error(mul(x, y), exact(x) * exact(y)), 5 * u2);
    ASSERT_LE(relative_error(mul(x, b), exact(x) * Known(b)), 2 * u2);
    ASSERT_LE(relative_error(div(x, y), exact(x) / exact(y)), 15.001 * u2);
  }
}

TEST(DoubleDouble, ExpKeepsItsDeclaredError) {
  Random r(12);
  double worst = 0;
  for (int i = 0; i < 30000; ++i) {
    // All binades of the argument; both signs; halfway between multiples of ln 2, where the reduction is largest
    double x = -std::ldexp(1 + r.uniform(), static_cast<int>(r.below(39)) - 30);
    if (i % 4 == 1) x = -660 * r.uniform();
    if (i % 4 == 2) x = (static_cast<double>(r.below(900)) - 899.5 + 1e-9 * r.normal()) * 0.6931471805599453;
    if (i % 8 == 3) x = 700 * r.uniform();
    if (x < -660) continue;
    const DoubleDouble a = two_sum(x, x * 0x1p-54 * r.between(-1, 1));
    const double error = relative_error(exp_dd(a), exp(exact(a)));
    ASSERT_LE(error, exp_dd_error) << std::hexfloat << a.hi << " + " << a.lo;
    worst = std::max(worst, error);
  }
  std::printf("  exp_dd: largest relative error 2^%.2f, declared 2^%.0f\n", std::log2(worst), std::log2(exp_dd_error));
  EXPECT_GT(worst, exp_dd_error / 256);  // the declaration is not idle
}

TEST(DoubleDouble, ExpUnderflowsGradually) {
  Random r(13);
  for (int i = 0; i < 5000; ++i) {
    const DoubleDouble a = two_sum(r.between(-760, -660), r.normal() * 0x1p-46);
    const Known want = exp(exact(a)), error = abs(exact(exp_dd(a)) - want);
    ASSERT_LE(error, want * Known(exp_dd_error) + Known(exp_dd_floor)) << a.hi;
  }
  for (double x : {-746.0, -747.0, -1e5, -1e300, -infinity}) {
    EXPECT_EQ(exp_dd(DoubleDouble{x, 0}).hi, 0) << x;
    EXPECT_EQ(exp_dd(DoubleDouble{x, 0}).lo, 0) << x;
  }
  EXPECT_EQ(exp_dd(DoubleDouble{0, 0}).hi, 1);
  EXPECT_EQ(exp_dd(DoubleDouble{0, 0}).lo, 0);
  EXPECT_EQ(exp_dd(DoubleDouble{-0.0, -0.0}).hi, 1);
}

TEST(DoubleDouble, LogKeepsItsDeclaredError) {
  Random r(14);
  for (int i = 0; i < 20000; ++i) {
    // Not exp of a double: such an x has a logarithm that is nearly a double, and hides the correction
    const double x = i % 2 ? 1 + std::ldexp(r.uniform(), -static_cast<int>(r.below(60)))
                           : std::ldexp(1 + r.uniform(), static_cast<int>(r.below(1800)) - 900);
    const DoubleDouble a = two_sum(x, x * 0x1p-54 * r.between(-1, 1));
    const Known want = log(exact(a)), error = abs(exact(log_dd(a)) - want);
    ASSERT_LE(error, Known(log_dd_error) + abs(want) * Known(4 * 0x1p-106)) << a.hi;
  }
}

// |got - want| in ulps of got.
double ulps(double got, const Known& want) {
  const double ulp = std::nextafter(std::fabs(got), infinity) - std::fabs(got);
  return static_cast<double>(Known(abs(Known(got) - want) / Known(ulp)));
}

TEST(Libm, ExpAndLogStayWithinOneUlp) {
  Random r(15);
  double worst_exp = 0, worst_log = 0;
  for (int i = 0; i < 30000; ++i) {
    const double x = i % 2 ? r.between(-745, 0) : -std::ldexp(r.uniform(), static_cast<int>(r.below(20)) - 14);
    if (x < -745) continue;
    worst_exp = std::max(worst_exp, ulps(std::exp(x), exp(Known(x))));
    const double y = i % 2 ? 1 + 4 * r.uniform() : std::exp(r.between(0, 30));
    worst_log = std::max(worst_log, ulps(std::log(y), log(Known(y))));
  }
  std::printf("  exp %.4f ulp, log %.4f ulp (sampled: lower bounds of the worst)\n", worst_exp, worst_log);
  EXPECT_LE(worst_exp, 1);
  EXPECT_LE(worst_log, 1);
  EXPECT_EQ(std::exp(0.0), 1);
  EXPECT_EQ(std::log(1.0), 0);
}

TEST(Radius, NeverBecomesNaN) {
  const double values[] = {0, 1e-320, 1e-17, 0.2, 1, 700, 745, 1e5, 1e300, infinity, nan};
  for (double w : {0.0, 1e-320, 0.5, 1.0})
    for (double gap : {0.0, 1e-320, 0.7, 745.0, 1e5})
      for (double tau : values) {
        const double e = weight_error(w, gap, tau);
        EXPECT_FALSE(std::isnan(e)) << w << " " << gap << " " << tau;
        EXPECT_TRUE(!std::isnan(tau) || e == infinity);
      }
  for (double gap : values)
    for (double absolute : values) {
      const Gap g = gap_of(gap, 1e-15, absolute);
      EXPECT_LE(g.gap, 1e5);
      EXPECT_FALSE(weight_error(0, g.gap, g.tau) < 0x1p-1074 && g.gap > 0);
      EXPECT_TRUE(!std::isnan(absolute) || std::isnan(g.tau));
    }
  EXPECT_EQ(certified(nan, 1), infinity);
  EXPECT_EQ(certified(infinity, 1), infinity);
  EXPECT_EQ(certified(-1, 1), infinity);
  EXPECT_EQ(certified(0, 1), 0);
  EXPECT_GT(certified(1, 1), 1);
}

// |e^x w^ - w^| for every x in [-tau, tau] is inside weight_error(w^, ...).
TEST(Radius, WeightErrorCoversBothSides) {
  for (double gap : {0.0, 1.0, 300.0, 700.0, 744.0})
    for (double tau : {1e-15, 1e-3, 0.24, 0.26, 3.0, 50.0, 800.0}) {
      const double w = std::exp(-gap), e = weight_error(w, gap, tau);
      for (double side : {-1.0, 1.0}) {
        const Known other = exp(Known(side * tau) - Known(gap));
        EXPECT_LE(abs(other - Known(w)), Known(e) + Known(w) * Known(0x1p-52)) << gap << " " << tau << " " << side;
      }
    }
}

}  // namespace
}  // namespace attest::test
