// A million elements and more.
#include <gtest/gtest.h>

#include "oracle/tests/bound_forward_sweep.h"

namespace attest::bound_test {
namespace {

TEST(BoundForwardFull, HoldsForAMillionElements) { EXPECT_GE(sweep(32, 2), 1000000); }

}  // namespace
}  // namespace attest::bound_test
