// The one entry of every driver.
#pragma once

#include <string>
#include <vector>

#include "properties/law.h"

namespace attest {

// Checks one law on one case with one kernel. Never throws for what a kernel or a case does: a throw, an error status
// or a workspace beyond the Contract is a FAIL with a reason. A law that does not bind the kernel on this case gives
// NOT_RUN; drivers that count ask law.why_not first. If record is not empty the case is saved there before the kernel
// runs and removed unless the check fails.
CheckResult check_case(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context,
                       const std::string& record = "");

// Greedy bounded shrinking of a failing case; returns the simplest that still fails under the same law.
Case shrink_failure(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context, int max_checks);

// Our own kernels as the harness sees them.
std::vector<Kernel> built_in_kernels();
// Those whose device is here.
std::vector<Kernel> runnable_kernels();

// Whether `name` matches a pattern with * and ?.
bool glob_match(std::string_view pattern, std::string_view name);

// Whether the case names this kernel and law among those that it is for (no names: it is for all).
bool meant_for(const Case& c, std::string_view kernel, std::string_view law);

// One line: where, got, want, error/bound, and what the law says. For any outcome.
std::string describe(const CheckResult& result);

}  // namespace attest
