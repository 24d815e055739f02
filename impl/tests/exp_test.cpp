// The constants that Contracts promise for exp and log, measured again. Here a strided subset; full_test.cpp takes
// every negative float and over two million doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "impl/core/exp.h"
#include "impl/cpu/row_ops.h"
#include "impl/registry.h"
#include "impl/tests/exp_sweep.h"
#include "impl/tests/support.h"

namespace attn::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

TEST(Exp, SpecialValues) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(0.0), 1.0);
  EXPECT_EQ(exp_of(-0.0), 1.0);
  EXPECT_EQ(exp_of(-inf), 0.0f);
  EXPECT_EQ(exp_of(-static_cast<double>(inf)), 0.0);
  EXPECT_EQ(exp_of(inf), inf);
  EXPECT_EQ(exp_of(static_cast<double>(inf)), inf);
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
  EXPECT_TRUE(std::isnan(exp_of(-std::nan(""))));
  EXPECT_EQ(exp_of(std::numeric_limits<float>::lowest()), 0.0f);
  EXPECT_EQ(exp_of(std::numeric_limits<double>::lowest()), 0.0);
}

TEST(Exp, UnderflowsGradually) {
  EXPECT_GT(exp_of(-90.0f), 0.0f);
  EXPECT_LT(exp_of(-90.0f), std::numeric_limits<float>::min());
  EXPECT_EQ(exp_of(-103.0f), 0x1p-149f);
  EXPECT_EQ(exp_of(-104.0f), 0.0f);
  EXPECT_EQ(exp_of(-745.0), 0x1p-1074);
  EXPECT_EQ(exp_of(-745.2), 0.0);
}

TEST(Exp, Fp32KeepsItsContract) {
  const SweepResult r = sweep_fp32(0, 83);
  print("exp fp32, every 83rd", r);
  EXPECT_LE(r.worst, find_preset("fp32.fa2")->exp_error);
  EXPECT_LE(r.below_normal, 1 + find_preset("fp32.fa2")->exp_error);
}

TEST(Exp, Fp64KeepsItsContract) {
  const SweepResult r = sweep_fp64(30000, 1);
  print("exp fp64", r);
  EXPECT_LE(r.worst, find_preset("fp64.fa2")->exp_error);
  EXPECT_LE(r.below_normal, 1 + find_preset("fp64.fa2")->exp_error);
}

// log of a row sum, which is at least 1 and at most the number of keys.
TEST(Log, KeepsItsContract) {
  Noise noise(3);
  double worst32 = 0, worst64 = 0;
  for (int t = 0; t < 300000; ++t) {
    const double x = t % 2 ? 1 + noise.unit() * 0.01 : std::exp2(noise.unit() * 40);
    const auto single = static_cast<float>(x);
    if (single > 1) {
      const long double want = logl(static_cast<long double>(single));
      const auto error = static_cast<double>(fabsl(log_of(single) - want) / want * 0x1p24L);
      if (!(error <= worst32)) worst32 = error;
    }
    if (x > 1) {
      const long double want = logl(static_cast<long double>(x));
      const auto error = static_cast<double>(fabsl(log_of(x) - want) / want * 0x1p53L);
      if (!(error <= worst64)) worst64 = error;
    }
  }
  std::printf("log: fp32 worst %.6f u, fp64 worst %.6f u\n", worst32, worst64);
  EXPECT_LE(worst32, find_preset("fp32.fa2")->log_relative);
  EXPECT_LE(worst64, find_preset("fp64.fa2")->log_relative + 0x1p-9);  // logl is off by up to 2^-11 of u itself
  EXPECT_EQ(log_of(1.0f), 0.0f);
  EXPECT_EQ(log_of(1.0), 0.0);
}

}  // namespace
}  // namespace attn::test
