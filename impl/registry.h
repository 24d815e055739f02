// The table of kernels that Attest ships: one explicit list, no static-initialiser magic.
#pragma once

#include <span>

#include "impl/attention.h"

namespace attn {

// Every CPU kernel, in a fixed order.
std::span<const attn_kernel> cpu_kernels();

// Every CUDA kernel, in a fixed order, also in a build without CUDA: they are listed everywhere and say why they cannot
// run. Their tensor-core constants are those of the current device, or of sm_90 where there is none.
std::span<const attn_kernel> cuda_kernels();

// A Contract preset by name ("fp32.fa2", "bf16.p16.split", ...), or nullptr. Presets are the Contracts of our own
// kernels: formats x algorithm. A plugin may copy one instead of filling in every constant.
const attn_contract* find_preset(const char* name);
std::span<const attn_contract> presets();

}  // namespace attn
