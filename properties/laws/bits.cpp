// unwritten, untouched, deterministic: what a kernel may write, and that it writes the same again.
#include "properties/laws/common.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

CheckResult check_unwritten(const Case& c, const Kernel& kernel, const LawContext& context) {
  // 0x5A is large and finite, 0xFF a NaN: an element that keeps either, or adds to it, differs between the runs.
  const Run a = run_case(kernel, c, {0x5A, 0xFF, 0});
  if (!a.ok()) return stopped(a.execution);
  const Run b = run_case(kernel, c, {0xFF, 0xFF, 0});
  if (!b.ok()) return stopped(b.execution);
  Tally tally;
  agree_runs(tally, kernel, a.problem, b.problem, promises(kernel, ATTN_PROMISE_DETERMINISTIC), context,
             "depends on what stood in the output before");
  return tally.finish("the problem has no output elements");
}

CheckResult check_untouched(const Case& c, const Kernel& kernel, const LawContext& context) {
  Tally tally;
  // execute() has checked the size of the workspace against the Contract's formula, and its canaries.
  const Run a = run_case(kernel, c, {0xA5, 0xFF, 0});
  if (!a.ok()) return stopped(a.execution);
  const std::string report = a.problem.untouched_report();
  if (!report.empty()) {
    tally.fail("", report);
    return tally.finish("");
  }
  tally.note(Verdict::pass, "");
  // What was read outside of the tensors cannot be seen, but what came of it can.
  const Run b = run_case(kernel, c, {0xA5, 0x3C, 0});
  if (!b.ok()) return stopped(b.execution);
  agree_runs(tally, kernel, a.problem, b.problem, promises(kernel, ATTN_PROMISE_DETERMINISTIC), context,
             "depends on what stands outside of the tensors");
  const std::string again = b.problem.untouched_report();
  if (!again.empty()) tally.fail("", again);
  return tally.finish("");
}

CheckResult check_deterministic(const Case& c, const Kernel& kernel, const LawContext& context) {
  const bool bitwise = promises(kernel, ATTN_PROMISE_DETERMINISTIC);
  const Run first = run_case(kernel, c);
  if (!first.ok()) return stopped(first.execution);
  Tally tally;
  Case x = c;
  for (const std::int32_t threads : {c.tiling.threads, 1, 2, 3}) {
    x.tiling.threads = threads;
    const Run run = run_case(kernel, x);
    if (!run.ok()) return stopped(run.execution);
    agree_runs(tally, kernel, first.problem, run.problem, bitwise, context,
               "against a run with " + std::to_string(threads) + " threads");
    if (tally.failed()) break;
  }
  return tally.finish("the problem has no output elements");
}

}  // namespace

Law unwritten_law() {
  return {"unwritten", "Every output element is written: two prefill patterns, the same bits out.", why_not_any,
          check_unwritten, nothing_to_shape};
}

Law untouched_law() {
  return {"untouched",
          "Inputs, padding, guard zones and canaries are unchanged, nothing outside has influence, and the workspace "
          "stays within the declared formula.",
          why_not_any, check_untouched, nothing_to_shape};
}

Law deterministic_law() {
  return {"deterministic",
          "The same problem gives the same bits, for any number of threads (within bounds if unpromised).", why_not_any,
          check_deterministic, nothing_to_shape};
}

}  // namespace attest
