// The kill matrix: every planted bug under every law that binds it, with the gate's own budget.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest {

struct MutantOptions {
  std::vector<std::string> mutants, laws;  // globs; empty: all
  std::uint64_t seed = 1;
  int cases = 24;      // generated for every kernel and law, as in the gate
  std::string corpus;  // directory; "none": no replay
  std::string json;    // path, "-" for standard output, or empty
  int jobs = 0;        // 0: one for each core
  bool quiet = false;
};

// Runs the controls (the readable kernels without a bug) and all mutants. Returns 0 when every mutant is killed and
// every control passes, else 1. Raises UsageError or CaseError.
int run_mutants(const MutantOptions& options);

}  // namespace attest
