// Largest z that a correct kernel may show under the law `unbiased`, by what its errors are made of.
#pragma once

#include <span>
#include <string_view>

#include "oracle/case.h"
#include "properties/law.h"

namespace attest {

// False alarms per check that the thresholds are made for. A default gate makes fewer than 10^3 such checks.
inline constexpr double kFalseAlarm = 1e-9;

struct UnbiasedThreshold {
  std::string_view errors;  // what the errors are made of
  bool p_rounded;           // P has fewer bits than the accumulator
  bool o_rounded;           // O is stored with fewer bits than the accumulator
  double most;              // z
};

// Every group of Contracts and outputs once. Source: properties/calibration, reports/recorded/calibration-*.md.
std::span<const UnbiasedThreshold> unbiased_thresholds();
const UnbiasedThreshold& unbiased_threshold(const attn_contract& contract, OutDType out);

}  // namespace attest
