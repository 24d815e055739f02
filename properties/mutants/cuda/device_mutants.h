// GPU mutants: a small readable CUDA kernel with one planted bug each, and what must kill it: a law, or a tool of
// compute-sanitizer for bugs that results show by luck only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "properties/mutants/cuda/bug.h"
#include "properties/mutants/mutants.h"

namespace attest::mutants {

struct DeviceMutant {
  DeviceBug bug;
  DeviceFlavour flavour;
  // Mutant::bug is Bug::none: that enumeration is the CPU kernel's. killer may be a tool.
  Mutant facts;
};

// The table: every bug once. Listed in every build.
std::span<const DeviceMutant> device_table();

// The mutants as kernels "mutant.<name>", in the table's order, and the kernels without a bug.
std::vector<Kernel> device_mutant_kernels();
std::vector<Kernel> device_control_kernels();

// What a targeted case is for: cases that cost seconds, given to this mutant and to the control of its flavour.
struct TargetedCase {
  DeviceBug bug;
  std::string name, law;
  Case data;
};
std::vector<TargetedCase> targeted_cases();

// A small problem in which every part of the kernel has something to do: several tiles and splits, short ones, a split
// without keys, more columns than a warp has lanes but fewer than a block has threads.
Case launch_case();

// Runs a kernel once on that problem, for a sanitizer to watch. Every tensor has an allocation of its own, of exactly
// its size; outputs and workspace hold nothing. Returns "" or what went wrong.
std::string run_alone(const Kernel& kernel, const Case& c);

// The current device, its architecture and driver, for reports.
std::string device_name();

}  // namespace attest::mutants
