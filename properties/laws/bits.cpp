// unwritten, untouched, deterministic: what a kernel may write, and that it writes the same again.
#include <utility>

#include "properties/laws/common.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

// LSE that is not wanted (lse.data == NULL) changes nothing about O, and nothing is written where it would have been.
// b: a run on the same case with the prefill 0xFF.
Execution run_without_lse(Tally& tally, const Kernel& kernel, const Case& c, const Run& b, const LawContext& context) {
  Problem p(c, formats_for(kernel), {0xFF, 0xFF, 0});
  const auto before = p.output_bits("lse");
  void*& lse = p.mutable_abi().lse.data;
  void* const place_of_lse = std::exchange(lse, nullptr);
  Execution run = execute(kernel, p);
  if (run.status == Outcome::pass && !promises(kernel, ATTN_PROMISE_DETERMINISTIC))
    tally.absorb(judge_problem(kernel, p, context));
  lse = place_of_lse;
  if (run.status == Outcome::fail) run.reason += " (where LSE is not wanted)";
  if (run.status != Outcome::pass) return run;
  const auto written = p.output_bits("lse");
  for (std::size_t n = 0; n < before.size(); ++n)
    if (written[n] != before[n]) {
      tally.fail("lse[" + std::to_string(n) + "]", "is written where lse.data is NULL");
      break;
    }
  if (!promises(kernel, ATTN_PROMISE_DETERMINISTIC)) return run;
  const auto got = p.output_bits("o"), want = b.problem.output_bits("o");
  const auto got_values = p.output("o"), want_values = b.problem.output("o");
  for (std::size_t n = 0; n < got.size(); ++n)
    tally.same(got[n], want[n], got_values[n], want_values[n],
               [&] { return "o[" + std::to_string(n) + "] where LSE is not wanted"; });
  return run;
}

CheckResult check_unwritten(const Case& c, const Kernel& kernel, const LawContext& context) {
  // 0x5A is large and finite, 0xFF a NaN: an element that keeps either, or adds to it, differs between the runs.
  const Run a = run_case(kernel, c, {0x5A, 0xFF, 0});
  if (!a.ok()) return stopped(a.execution);
  const Run b = run_case(kernel, c, {0xFF, 0xFF, 0});
  if (!b.ok()) return stopped(b.execution);
  Tally tally;
  agree_runs(tally, kernel, a.problem, b.problem, promises(kernel, ATTN_PROMISE_DETERMINISTIC), context,
             "depends on what stood in the output before");
  if (c.op == Op::forward) {
    const Execution run = run_without_lse(tally, kernel, c, b, context);
    // A kernel that has to write LSE says so by refusing the problem.
    if (run.status != Outcome::pass && run.status != Outcome::rejected) return stopped(run);
  }
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
  for (std::int64_t n = 0; n < context.launches; ++n) {
    const auto threads = static_cast<std::int32_t>(n % 4);
    x.tiling.threads = threads > 0 ? threads : c.tiling.threads;
    const Run run = run_case(kernel, x);
    if (!run.ok()) return stopped(run.execution);
    agree_runs(tally, kernel, first.problem, run.problem, bitwise, context,
               "against run " + std::to_string(n + 2) + " with " + std::to_string(x.tiling.threads) + " threads");
    if (tally.failed()) break;
  }
  return tally.finish("the problem has no output elements");
}

// The law is about what stands between rows and heads, so there should be something.
void shape_gaps(Case& c, Random& random) {
  if (random.chance(0.5)) return;
  for (Layout* l : {&c.q_layout, &c.k_layout, &c.v_layout, &c.o_layout}) {
    l->row_padding = random.between(1, 9);
    if (c.op == Op::forward) l->head_padding = random.between(0, 3);
  }
}

}  // namespace

Law unwritten_law() {
  return {"unwritten",
          "Every output element is written: two prefill patterns, the same bits out; O is the same where LSE is not "
          "wanted.",
          why_not_any, check_unwritten, nothing_to_shape};
}

Law untouched_law() {
  return {"untouched",
          "Inputs, padding, guard zones and canaries are unchanged, nothing outside has influence, and the workspace "
          "stays within the declared formula.",
          why_not_any, check_untouched, shape_gaps};
}

Law deterministic_law() {
  return {"deterministic",
          "The same problem gives the same bits, for any number of threads (within bounds if unpromised).", why_not_any,
          check_deterministic, nothing_to_shape};
}

}  // namespace attest
