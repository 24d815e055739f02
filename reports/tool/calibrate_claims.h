// Who claims what: from a constant that was measured to the Contracts that depend on it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/tool/calibrate_judge.h"

namespace attest {

// Fills in claims and faults. `concerns`: whether a Contract depends on the constant; `value`: what it claims, in
// words; `holds`: whether that is no less than what was measured; `fix`: what to do where it does not.
void collect_claims(Constant& constant, Kernels kernels, const std::function<bool(const attn_contract&)>& concerns,
                    const std::function<std::string(const attn_contract&)>& value,
                    const std::function<bool(const attn_contract&)>& holds, const std::string& fix);

// mma_terms and mma_fraction_bits.
std::vector<Constant> accumulation_constants(const Calibration& c, Kernels kernels);

}  // namespace attest
