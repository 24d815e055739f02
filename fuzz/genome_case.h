// Genome -> Case, for every operation. Total: every genome is a valid case.
#pragma once

#include <span>

#include "fuzz/genome.h"
#include "fuzz/limited_case.h"
#include "oracle/case.h"

namespace attest::fuzz {

// What a case is made for: the operation, the states that the kernel holds, the format that its inputs are kept in, and
// what shapes it takes.
struct Setting {
  Op op = Op::forward;
  std::vector<StateKind> states = {StateKind::mla};
  DType storage = DType::fp32, accumulator = DType::fp32;
  Limited limited = {};
};

Case to_case(const Genome& genome, const Setting& setting);

// The tensors that patterns are laid over, in the order of Genome::words; fewer than kPatterns for some operations.
std::span<const char* const> pattern_tensors(Op op);

// Writes the recipe's numbers into the words of every tensor that is small enough: from there, one of them can change
// without the others.
void freeze(Genome& genome, const Setting& setting);

}  // namespace attest::fuzz
