// The kill matrix: every planted bug under every law that binds it, with the gate's own budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

struct MutantOptions {
  std::vector<std::string> mutants, laws;  // globs; empty: all
  std::vector<std::uint64_t> seeds{1};     // one matrix for each
  int cases = 24;                          // generated for every kernel and law, as in the gate
  double seconds = 60;                     // of processor time that a kill may take
  std::string corpus;                      // directory; "none": no replay
  std::string json;                        // path, "-" for standard output, or empty
  std::string markdown;                    // path or empty
  int jobs = 0;                            // 0: one for each core
  bool quiet = false;

  std::string device = "cpu";  // or "cuda": the GPU mutants and their controls instead
  bool require_cuda = false;   // exit 3 where a GPU mutant is NOT_RUN
  std::string one;             // "PART:NAME": one of them in this process, as mutants_device.h says
  double limit_seconds =
      20;  // longest that one check of a GPU mutant may take; a targeted case may take six times that
};

// Runs the controls (correct kernels) and all mutants, seed by seed. Returns 0 when every mutant is killed in time,
// every control passes and, of a whole matrix, every law earns its place; else 1. Raises UsageError or CaseError.
// Of GPU mutants: 0 too where there is no device, unless it is required: 3.
int run_mutants(const MutantOptions& options);

// Why a law stays although no planted bug is seen by it alone; "" for laws that have such a mutant.
std::string_view why_it_stays(std::string_view law);

}  // namespace attest
