// Known values at 200 decimal digits, for closed forms: MPFR by itself, none of the truth's own code.
#pragma once

#include <gtest/gtest.h>

#include <boost/multiprecision/mpfr.hpp>

#include "oracle/tests/truth_support.h"

namespace attest::test {

using Known =
    boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<200>, boost::multiprecision::et_off>;

// The truth claims this value: |known - (hi + lo)| <= radius, but for the known value's own 200 digits.
inline ::testing::AssertionResult encloses(const TruthElement& t, const Known& known) {
  if (t.kind != TruthKind::finite) return ::testing::AssertionFailure() << "kind " << static_cast<int>(t.kind);
  if (!(t.radius < HUGE_VAL)) return ::testing::AssertionFailure() << "radius " << t.radius;
  const Known error = abs(known - Known(t.hi) - Known(t.lo));
  if (error <= Known(t.radius) + abs(known) * Known(1e-190)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << t.hi << " + " << t.lo << ", known " << known.str(40) << ", error "
                                       << error.str(5) << " > radius " << t.radius;
}

}  // namespace attest::test
