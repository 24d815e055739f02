// `attest hunt`: climbs to the worst error/bound of kernels and keeps their worst cases.
#pragma once

#include <cstdint>
#include <string>

#include "reports/tool/select.h"

namespace attest {

struct HuntCommand {
  Selection selection;
  std::uint64_t seed = 1;
  std::int64_t evaluations = 20000;  // runs of each kernel
  double seconds = 0;                // for all kernels together; 0: no cap
  bool stored = false;
  std::string worst;  // directory of KERNEL.case: only ever climbs; "none": nothing is kept
  std::string out = "attest-failures";
  std::string markdown;  // path, or empty
  int jobs = 0;
};

// Exit code: 0 every kernel was measured and none left its bound, 1 one did (its case is saved in `out`), 3 a kernel
// rejected every case or has no device, 130 after Ctrl-C. The result is a function of seed, budget, build and the files
// in `worst`, not of the number of jobs. Raises UsageError, PluginError or CaseError.
int run_hunt(const HuntCommand& command);

}  // namespace attest
