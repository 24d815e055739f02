// The special functions of the device that kernels use, under one name each. Error constants: reports/recorded
// (measured over all 2^32 inputs by `attest calibrate`).
#pragma once

#include <cuda_runtime.h>

namespace attn {

// 2^x. 1 at +-0 and exact at integers, monotone, 0 at -inf. Results below 2^-126 become 0.
__device__ __forceinline__ float exp2_flushed(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 2^x with subnormal results kept (scaling code around ex2.approx).
__device__ __forceinline__ float exp2_gradual(float x) { return exp2f(x); }

// 1 / x, correctly rounded.
__device__ __forceinline__ float reciprocal(float x) { return __frcp_rn(x); }

}  // namespace attn
