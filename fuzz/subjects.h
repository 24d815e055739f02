// The kernels that a target checks, and for each the laws that have something to say of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/genome_case.h"
#include "properties/law.h"

namespace attest::fuzz {

struct Subject {
  Kernel kernel;
  Setting setting;
  std::vector<const Law*> laws;   // all may judge inputs found by search; `encloses` is the first
  bool may_round_output = false;  // O goes to 16 bits, or unrounded to the accumulator's format
};

// The CPU kernels of this operation, of those with this algorithm unless it is 0. ATTEST_FUZZ_KERNELS, a list of globs
// separated by commas, names others: any kernel whose device is here, and mutants ("mutant.*"), which are never taken
// unasked. Ends the process with exit code 2 and a message if none is left.
std::vector<Subject> subjects_of(Op op, std::int32_t algorithm = 0);

// The kernels of this device (ATTN_DEVICE_*), whatever their operation; its mutants if ATTEST_FUZZ_KERNELS names them.
// Ends the process with exit code 3 and the reason where the device is missing.
std::vector<Subject> subjects_on(std::int32_t device);

}  // namespace attest::fuzz
