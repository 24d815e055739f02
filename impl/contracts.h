// Contract presets: the arithmetic that our own kernels promise, by format and algorithm.
#pragma once

#include <cstdint>

#include "impl/attention.h"

namespace attn {

// The formats of the presets, in the order in which they are listed.
// exp2: weights by exp2 and one fused multiply-add, in hardware. tensor: the same, with products on tensor cores.
enum class ContractFormat { fp64, fp32, fp16_p16, fp16_p32, bf16_p16, bf16_p32, fp32_exp2, fp16_tensor, bf16_tensor };

// The preset of a format and an algorithm (ATTN_ALG_*).
const attn_contract& preset(ContractFormat format, std::int32_t algorithm);

}  // namespace attn
