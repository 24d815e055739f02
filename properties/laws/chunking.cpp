// chunking, tiling-invariant: how the work is cut must not matter.
#include <algorithm>

#include "properties/laws/common.h"
#include "properties/laws/fold.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

std::string why_not(const Case& c, const Kernel& kernel) {
  if (c.op == Op::merge) return "chunkings of a merge are its trees: merge-associates";
  return why_not_any(c, kernel);
}

// Tilings that have nothing in common: single keys, both sides of the sequence's end, more splits than blocks.
std::vector<Tiling> tilings(const Case& c, Random& random) {
  const std::int64_t tq = std::max<std::int64_t>(c.shape.tq, 1), tk = std::max<std::int64_t>(c.shape.tk, 1);
  std::vector<Tiling> out;
  const auto add = [&](std::int64_t br, std::int64_t bc, std::int64_t splits) {
    Tiling t = c.tiling;
    t.block_q = br;
    t.block_k = bc;
    t.splits = splits;
    out.push_back(t);
  };
  add(random.between(1, tq + 1), 1, 0);
  add(1, tk + random.between(-1, 1) > 0 ? tk + random.between(0, 1) : 1, 2);
  add(random.between(1, 8), random.between(2, 16), random.between(1, 5));
  add(random.between(1, tq), random.between(1, tk), tk + 2);
  add(0, 0, 0);
  add(128, 128, random.between(1, 3));
  return out;
}

CheckResult check_forward(const Case& c, const Kernel& kernel, const LawContext& context) {
  Case x = frozen(c, kernel);
  Random random = choices(context, c, 0x6368756e);
  LawContext fewer = context;
  fewer.max_rows = std::max<std::int64_t>(context.max_rows / 4, 16);
  Tally tally;
  CheckResult refused;
  int ran = 0;
  for (const Tiling& t : tilings(c, random)) {
    x.tiling = t;
    const Run run = run_case(kernel, x);
    if (run.execution.status == Outcome::rejected) {
      refused = stopped(run.execution);
      continue;
    }
    if (!run.ok()) return stopped(run.execution);
    ++ran;
    CheckResult r = judge_problem(kernel, run.problem, fewer);
    if (r.outcome == Outcome::fail)
      r.finding.where += " with blocks " + std::to_string(t.block_q) + " x " + std::to_string(t.block_k) + ", " +
                         std::to_string(t.splits) + " splits";
    tally.absorb(r);
  }
  if (ran == 0) return refused;
  return tally.finish("the problem has no output elements");
}

CheckResult check_step(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Problem p(c, formats_for(kernel));
  const StepInputs in(p);
  Random random = choices(context, c, 0x6368756e);
  Tally tally;
  std::vector<std::vector<std::int64_t>> chunkings{even_cuts(in.keys, 1), even_cuts(in.keys, random.between(2, 9)),
                                                   random_cuts(in.keys, false, random),
                                                   random_cuts(in.keys, true, random)};
  for (const auto& cuts : chunkings) {
    const Execution run = judge_fold(tally, kernel, c, in, cuts);
    if (run.status != Outcome::pass) return stopped(run);
  }
  return tally.finish("the problem has no output elements");
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  return c.op == Op::step ? check_step(c, kernel, context) : check_forward(c, kernel, context);
}

CheckResult check_invariant(const Case& c, const Kernel& kernel, const LawContext& context) {
  Case x = frozen(c, kernel);
  const Run base = run_case(kernel, x);
  if (!base.ok()) return stopped(base.execution);
  const bool bitwise = promises(kernel, ATTN_PROMISE_TILING_INVARIANT);
  Random random = choices(context, c, 0x74696c65);
  Tally tally;
  for (const Tiling& t : tilings(c, random)) {
    x.tiling = t;
    const Run other = run_case(kernel, x);
    if (other.execution.status == Outcome::rejected) continue;
    if (!other.ok()) return stopped(other.execution);
    std::vector<RowPair> rows;
    for (const RowIndex& at : judged_rows(base.problem, context)) rows.push_back({at, at});
    same_rows(tally, kernel, base.problem, other.problem, rows, bitwise,
              "under blocks " + std::to_string(t.block_q) + " x " + std::to_string(t.block_k) + ", " +
                  std::to_string(t.splits) + " splits");
    // Without the promise the pairs cost two truths each, and chunking judges all of these tilings anyway.
    if (!bitwise && tally.elements() > 0) break;
  }
  return tally.finish("no other tiling is supported, or there are no output elements");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random, 12);
}

}  // namespace

Law chunking_law() {
  return {"chunking", "Any block sizes, split counts and partitions of the keys agree with the truth.", why_not, check,
          shape};
}

Law tiling_invariant_law() {
  return {"tiling-invariant",
          "Other block sizes and split counts give the same bits where promised, else the same within both bounds.",
          why_not_forward, check_invariant, shape};
}

}  // namespace attest
