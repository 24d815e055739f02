// The compiler keeps the roundings that everything here is built on.
#include <gtest/gtest.h>

namespace {

struct Pair {
  double a, b;
};

[[gnu::noinline]] Pair rounded_sums(double x, double y, double p, double q) {
  return {static_cast<double>(static_cast<float>(x + p)), static_cast<double>(static_cast<float>(y + q))};
}

[[gnu::noinline]] double product_and_sum(double a, double b, double c) { return a * b + c; }

TEST(Compiler, RoundsToFloatInPairs) {
  const Pair r = rounded_sums(1.0, 2.0, 0x1p-40, 0x1p-40);
  EXPECT_EQ(r.a, 1.0);
  EXPECT_EQ(r.b, 2.0);
}

TEST(Compiler, DoesNotContractProductsAndSums) {
  const double a = 1 + 0x1p-30;
  EXPECT_EQ(product_and_sum(a, a, -(1 + 0x1p-29)), 0.0);  // 2^-60 with a fused multiply-add
}

}  // namespace
