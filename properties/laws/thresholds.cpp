#include "properties/laws/thresholds.h"

namespace attest {
namespace {

constexpr UnbiasedThreshold kThresholds[] = {
    {"P kept, O kept", false, false, 0.88},
    {"P rounded, O kept", true, false, 0.83},
    // The output's own rounding, where the model is exact: z is 1 but for chance. With P rounded, z^2 is a mean of that
    // of P, which is smaller, and of this, in shares that the shape decides.
    {"P rounded, O rounded", true, true, 1.06},
    {"P kept, O rounded", false, true, 1.06},
};

}  // namespace

std::span<const UnbiasedThreshold> unbiased_thresholds() { return kThresholds; }

const UnbiasedThreshold& unbiased_threshold(const attn_contract& contract, OutDType out) {
  const bool p = contract.p_dtype != contract.acc_dtype;
  const bool o = out == OutDType::storage && contract.in_dtype != contract.acc_dtype;
  for (const UnbiasedThreshold& t : kThresholds)
    if (t.p_rounded == p && t.o_rounded == o) return t;
  return kThresholds[0];
}

}  // namespace attest
