// The generator gives the published numbers, and normals have the normal distribution.
#include <gtest/gtest.h>

#include <cmath>

#include "oracle/philox.h"

namespace attest {
namespace {

// Known answers of Random123 (kat_vectors: philox4x32 10), Salmon et al. 2011.
static_assert(philox4x32_10({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(inverse_normal(0.5) == 0);

TEST(Philox, IsAFunctionOfSeedStreamAndIndex) {
  RandomStream a(5, 1), b(5, 1), c(5, 2), d(6, 1);
  const std::uint64_t late = a.bits(1000001);
  EXPECT_NE(a.bits(0), a.bits(1));
  EXPECT_EQ(b.bits(0), a.bits(0));
  EXPECT_EQ(late, b.bits(1000001));  // whatever was asked before
  EXPECT_NE(c.bits(0), a.bits(0));
  EXPECT_NE(d.bits(0), a.bits(0));
}

TEST(Philox, QuantileInvertsTheDistributionFunction) {
  RandomStream random(11, 3);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    double p = random.uniform_open(i);
    if (i % 3 == 0) p = std::ldexp(p, -static_cast<int>(i % 50));  // far into the tail
    const double z = inverse_normal(p);
    const double back = 0.5 * std::erfc(-z / std::sqrt(2.0));
    // dPhi = phi dz: an error of z by an ulp moves the tail by about z^2 ulps.
    ASSERT_NEAR(back / p, 1, 4e-15 * (1 + z * z)) << p;
  }
}

TEST(Philox, LogarithmAgreesWithLibm) {
  RandomStream random(12, 3);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double x = std::ldexp(random.uniform_open(i), static_cast<int>(i % 200) - 150);
    ASSERT_NEAR(ieee_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
}

TEST(Philox, NormalsHaveTheirMomentsAndTails) {
  RandomStream random(13, 4);
  constexpr int n = 1000000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond_3 = 0;
  for (int i = 0; i < n; ++i) {
    const double z = random.normal(static_cast<std::uint64_t>(i));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    beyond_3 += std::abs(z) > 3;
  }
  // Four standard deviations of each estimate.
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 4 * std::sqrt(96.0 / n));
  EXPECT_NEAR(beyond_3, 2699.8, 4 * std::sqrt(2699.8));
}

}  // namespace
}  // namespace attest
