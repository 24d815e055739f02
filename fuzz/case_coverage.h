// Which situations a case is: what the counters are told of it.
#pragma once

#include "oracle/case.h"
#include "properties/law.h"

namespace attest::fuzz {

void cover(const Case& c, const Kernel& kernel);

}  // namespace attest::fuzz
