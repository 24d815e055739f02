// Kernels with a small bias, to see how small a bias the law `unbiased` sees.
#pragma once

#include <vector>

#include "properties/law.h"

namespace attest::calibration {

struct Biased {
  Kernel kernel;
  const char* bias;  // what is wrong with it
};

// FlashAttention-2 in bf16, P in bf16, truncated rather than rounded at a share of the keys (0: the control).
std::vector<Biased> biased_kernels();

}  // namespace attest::calibration
