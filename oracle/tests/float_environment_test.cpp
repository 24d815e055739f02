#include "oracle/float_environment.h"

#include <gtest/gtest.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace attest {
namespace {

TEST(FloatEnvironment, IsRightAndIsPutBack) {
  ASSERT_EQ(float_environment_fault(), "");
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    {
      const FloatEnvironmentGuard guard;
      ASSERT_EQ(std::fesetround(mode), 0);
      EXPECT_EQ(float_environment_fault(), "the rounding mode is not to nearest");
    }
    EXPECT_EQ(float_environment_fault(), "");
  }
#if defined(__SSE2__)
  for (const unsigned flag : {0x8000u, 0x0040u}) {  // flush-to-zero, denormals-are-zero
    {
      const FloatEnvironmentGuard guard;
      _mm_setcsr(_mm_getcsr() | flag);
      EXPECT_EQ(float_environment_fault(), "subnormal numbers are flushed to zero");
    }
    EXPECT_EQ(float_environment_fault(), "");
  }
#endif
}

}  // namespace
}  // namespace attest
