// The seeds' promise, point by point: in fp64 the result equals plain two-pass attention to 1e-9 for every block size.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/attention.h"

namespace attest::grid {

// Every (d, d_v) of {1, 2, 3, 7, 8, 31, 32, 33, 63, 64}^2, which the grid cycles through.
std::vector<std::pair<std::int64_t, std::int64_t>> dimensions();

// Kernels that the grid runs: fp64 forward kernels of each algorithm, and the fp64 step.
std::vector<const attn_kernel*> kernels();

// One shape under all the block sizes given, plain and causal. "" or what differed first.
std::string check(std::int64_t tq, std::int64_t tk, std::int64_t d_qk, std::int64_t d_v,
                  const std::vector<std::int64_t>& block_sizes);

}  // namespace attest::grid
