// The device code that a benchmark needs beside what it times.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "impl/attention.h"

namespace attest {

// Keeps the stream busy for so long, on one thread: what is enqueued behind it begins when all of it is there.
cudaError_t bench_spin(std::uint64_t nanoseconds, cudaStream_t stream);

// mean + deviation * N(0, 1) (Box-Muller over a counter-based generator), rounded to nearest.
cudaError_t bench_fill(void* data, std::int32_t dtype, std::int64_t count, std::uint64_t seed, float mean,
                       float deviation, cudaStream_t stream);

struct BenchGap {               // in device memory; begins as zeros
  unsigned int value, largest;  // bits of floats that are not negative: their order is that of the numbers
  unsigned long long nonfinite;
};
cudaError_t bench_gap(const void* a, const void* b, std::int32_t dtype, std::int64_t count, BenchGap* gap,
                      cudaStream_t stream);

// (m, l) of dense rows of fp32 scores by definition: the maximum, then the sum of exp(x - m) in fp64.
cudaError_t bench_reference_scan(const attn_problem& problem, cudaStream_t stream);

// "13.0.88": the nvcc that compiled this.
const char* bench_cuda_compiler();

}  // namespace attest
