// The fp32 forward kernels: fused multiply-adds on the ordinary cores, no tensor cores, no tf32.
#pragma once

#include "impl/cuda/functions.h"

namespace attn {

KernelEntry cuda_fa1_fp32();
KernelEntry cuda_fa2_fp32();
KernelEntry cuda_causal_fp32();
KernelEntry cuda_decode_fp32();

}  // namespace attn
