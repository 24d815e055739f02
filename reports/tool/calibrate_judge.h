// What the CUDA Contracts claim, beside what was measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "impl/attention.h"
#include "reports/tool/calibrate_data.h"

namespace attest {

using Kernels = std::span<const attn_kernel>;

// One value that Contracts claim, and whose they are.
struct Claim {
  std::string value;
  std::vector<std::string> kernels;
  bool holds = true;
};

struct Constant {
  std::string name;                // of the Contract's field
  std::string documented, source;  // what the maker says
  std::string measured, where;     // where: the worst input, in hex
  std::vector<Claim> claims;
  std::vector<std::string> faults;  // a sentence for each claim that does not hold
  bool holds() const { return faults.empty(); }
};

// The distinct log_absolute of these kernels.
std::vector<double> log_absolutes(Kernels kernels);

// Every constant that some kernel's Contract depends on. A claim holds if it is no less than what was measured, give or
// take what the fp64 reference may be off by.
std::vector<Constant> judge(const Calibration& c, Kernels kernels);

}  // namespace attest
