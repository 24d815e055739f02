// Errors that were measured against fp64 on a device, again at 200 bits here.
#pragma once

#include <vector>

#include "reports/tool/calibrate_data.h"

namespace attest {

// The exact (y - R) / R of one input and result, in u = 2^-24; 0 where R is 0.
double exact_relative_error(cal::Function f, std::uint32_t input, std::uint32_t output);

// Every binade's largest relative errors of both signs. MPFR rounds correctly, so that `worst` is what the fp64
// reference was off by.
ReferenceCheck check_reference(const std::vector<FunctionFacts>& functions);

}  // namespace attest
