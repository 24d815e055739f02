// The special functions as the kernels call them, their references in fp64, and what their makers promise.
#pragma once

#include "impl/core/exp.h"
#include "impl/cuda/approx.cuh"
#include "impl/cuda/calibrate/measure.h"

namespace attn::calibrate {

__device__ inline float value(Function f, float x) {
  float y = 0;
  switch (f) {
    case Function::exp2_flushed:
      return exp2_flushed(x);
    case Function::exp2_approx:
      asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
    case Function::exp2_gradual:
      return exp2_gradual(x);
    case Function::exp:
      return expf(x);
    case Function::exp_shared:
      return exp_of(x);
    case Function::log:
      return logf(x);
    case Function::log2_approx:
      asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
    case Function::reciprocal:
      return reciprocal(x);
    case Function::division:
      return 1.0f / x;
    case Function::reciprocal_approx:
      asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
    case Function::reciprocal_flushed:
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
  }
  return y;
}

// CUDA programming guide, "Mathematical Functions": fp64 exp2, exp, log and log2 are within 1 ulp, division is IEEE's.
__device__ inline double reference(Function f, float x) {
  double exact = x;
  switch (f) {
    case Function::exp2_flushed:
    case Function::exp2_approx:
    case Function::exp2_gradual:
      return exp2(exact);
    case Function::exp:
    case Function::exp_shared:
      return exp(exact);
    case Function::log:
      return log(exact);
    case Function::log2_approx:
      return log2(exact);
    case Function::reciprocal_flushed:
      if (fabs(exact) < 0x1p-126) exact = copysign(0.0, exact);
      return 1.0 / exact;
    default:
      return 1.0 / exact;
  }
}

// Whether results fall as inputs rise (within one sign), where others rise.
__device__ inline bool falls(Function f) { return f >= Function::reciprocal; }

// Whether a result breaks what is documented. PTX ISA 9.1: ex2.approx 2 ulp and rcp.approx 1 ulp from the correctly
// rounded result; lg2.approx 2^-22 absolute on (0.5, 2), else relative. CUDA programming guide: exp2f and expf 2 ulp,
// logf 1 ulp. exp_of: its Contract's 1.40918 u is below that. distance: ulps from the correctly rounded result.
__device__ inline bool breaks_documented(Function f, float x, double distance, double absolute, double relative) {
  switch (f) {
    case Function::exp2_flushed:
    case Function::exp2_approx:
    case Function::exp2_gradual:
    case Function::exp:
    case Function::exp_shared:
      return distance > 2;
    case Function::log2_approx:
      return x > 0.5f && x < 2.0f ? absolute > 0x1p-22 : relative > 0x1p-22;
    case Function::reciprocal:
    case Function::division:
      return distance > 0;
    default:
      return distance > 1;
  }
}

}  // namespace attn::calibrate
