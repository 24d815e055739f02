// Mutants: kernels with one planted bug each, and the law that is expected to kill it. They prove that the gate sees.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "properties/law.h"
#include "properties/mutants/bug.h"

namespace attest::mutants {

struct Mutant {
  Bug bug;
  std::string_view name;         // the kernel is called "mutant.<name>"
  std::string_view bug_class;    // class of historic bugs that it stands for
  std::string_view description;  // one line: what is wrong
  std::string_view killer;       // law expected to kill it
  std::string_view preset;       // Contract that it claims; ".ml", ".mla" or ".olse" at its end: the kind of its states
};

// The table: every mutant once, in the order of the enumeration.
std::span<const Mutant> table();

// The mutants as kernels. The controls (Bug::none under each Contract in use) are not among them.
std::vector<Kernel> mutant_kernels();

// The readable kernels without a bug, one for each Contract that the table names: these must pass.
std::vector<Kernel> control_kernels();

}  // namespace attest::mutants
