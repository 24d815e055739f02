// One .case, explained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/bound.h"
#include "properties/execute.h"
#include "reports/tool/plan.h"

namespace attest {

struct CheckOptions {
  Selection selection;
  std::string file;
  bool all = false;                               // every element, not only the worst ten
  std::int64_t launches = LawContext().launches;  // of the law `deterministic`
  IsolationOptions isolation;
};

// Checks the case under every law that binds, kernel by kernel, then explains the outputs element by element.
// Exit code: 0 every kernel has a PASS, 1 a FAIL, 3 a kernel without a PASS or no kernel at all.
int run_check(const CheckOptions& options);

// One output element against its deterministic bound.
struct ElementReport {
  std::string where;
  TruthElement truth;
  ElementBound bound;
  double got = 0;
  Judgement judgement;
  std::string tier;
  DType format = DType::fp32;
};

// Runs the kernel once and judges what it wrote (all rows where they fit, else the rows that the laws judge), worst
// first. `status` says whether it ran; empty otherwise.
struct CaseReport {
  Execution status;
  std::vector<ElementReport> elements;
  std::int64_t rows = 0, rows_judged = 0;
  // The format rounds an input: values that the case prints are then not what the kernel should give.
  bool inputs_rounded = false;
};
CaseReport explain_case(const Case& c, const Kernel& kernel, const LawContext& context);

}  // namespace attest
