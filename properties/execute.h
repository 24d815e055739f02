// Running a kernel on a Problem, with everything around it that a law needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oracle/problem.h"
#include "properties/law.h"

namespace attest {

struct Execution {
  Outcome status = Outcome::pass;  // pass: ran. rejected, not_run, or fail (error status, throw, workspace, guards)
  std::string reason;
  std::size_t workspace_bytes = 0;
};

// supports(), workspace (guarded, exactly the size asked for, checked against the Contract's formula), run().
Execution execute(const Kernel& kernel, Problem& problem);

// Formats that the kernel's Contract names, for a case that leaves them open.
Formats formats_for(const Kernel& kernel);

// Workspace that the Contract allows for this problem, in bytes.
double workspace_allowance(const attn_contract& contract, const attn_problem& problem);

// Rows of a forward problem that are judged: all when they fit, else tile and alignment edges and a random rest.
struct RowIndex {
  std::int64_t batch, head, i;
};
std::vector<RowIndex> judged_rows(const Problem& problem, const LawContext& context);

// Judges every element (O and LSE, or m, l, acc) against its deterministic bound; escalates the oracle element-wise.
CheckResult judge_problem(const Kernel& kernel, const Problem& problem, const LawContext& context);

}  // namespace attest
