// Contract presets: the arithmetic that our own kernels promise, by format and algorithm.
#pragma once

#include <cstdint>

#include "impl/attention.h"

namespace attn {

// The formats of the presets, in the order in which they are listed.
enum class ContractFormat { fp64, fp32, fp16_p16, fp16_p32, bf16_p16, bf16_p32 };

// The preset of a format and an algorithm (ATTN_ALG_*).
const attn_contract& preset(ContractFormat format, std::int32_t algorithm);

}  // namespace attn
