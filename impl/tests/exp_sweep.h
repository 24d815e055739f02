// Measures exp of impl/core/exp.h. fp32 against glibc's fp64 exp (error below 1e-9 u of fp32), fp64 against MPFR.
#pragma once

#include <cstdint>

namespace attn::test {

struct SweepResult {
  double worst = 0;  // relative error of normal results, in u
  double worst_at = 0;
  double below_normal = 0;  // absolute error of results below the normal range, in halves of the smallest subnormal
  std::int64_t count = 0;
};

// Every stride-th float in [-inf, -0], from the pattern `first`.
SweepResult sweep_fp32(std::uint32_t first, std::uint32_t stride);
// count random arguments per range, and every reduction edge (n + 1/2) ln 2 with its neighbours.
SweepResult sweep_fp64(std::int64_t count, std::uint64_t seed);

void print(const char* what, const SweepResult& result);

}  // namespace attn::test
