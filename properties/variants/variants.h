// Variants: correct kernels that compute the same attention differently: other orders, other exps, other rescales,
// other cuts. Each declares what its arithmetic really does. They prove that the gate does not cry wolf.
#pragma once

#include <vector>

#include "properties/law.h"

namespace attest::variants {

// Every variant once, in a fixed order, named "variant.<format>.<idea>"; origin "variants".
std::vector<Kernel> variant_kernels();

}  // namespace attest::variants
