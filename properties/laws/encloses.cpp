// encloses: the law that all others lean on.
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/fold.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What the kernel's arithmetic may add to a printed tolerance, element by element in the order of the output.
std::vector<double> bounds_of(const Kernel& kernel, const Problem& p, const std::string& tensor) {
  std::vector<double> out;
  if (p.source().op == Op::forward) {
    for (const RowPair& pair : all_rows(p)) {
      const RowBound bound = evaluate_row(kernel, p, pair.a).bound;
      if (tensor == "lse") out.push_back(bound.lse.deterministic);
      if (tensor == "o")
        for (const ElementBound& b : bound.o) out.push_back(b.deterministic);
    }
  } else if (p.source().op == Op::step) {
    const StepInputs in(p);
    for (std::int64_t r = 0; r < in.rows; ++r) {
      const StateBound bound = fold_bound(kernel, in, r, {in.keys}).state();
      if (tensor == "m") out.push_back(bound.m);
      if (tensor == "l") out.push_back(bound.l);
      if (tensor == "acc") out.insert(out.end(), bound.acc.begin(), bound.acc.end());
    }
  } else {
    const attn_problem& abi = p.abi();
    const StateValues a = read_state(abi.a), b = read_state(abi.b);
    const StateKind kind = p.source().state;
    const StateBound exact = exact_state(a.d_v);
    for (std::int64_t r = 0; r < a.rows; ++r) {
      const StateBound bound =
          merge_bound(kernel.abi->contract, merge_side(kind, a, r, exact), merge_side(kind, b, r, exact));
      if (tensor == "m") out.push_back(bound.m);
      if (tensor == "l") out.push_back(bound.l);
      if (tensor == "acc") out.insert(out.end(), bound.acc.begin(), bound.acc.end());
    }
  }
  return out;
}

// Documents print -inf for the LSE of a row that sees no key; the Contract may say +inf instead.
void state_empty_rows(const Kernel& kernel, const Problem& p, std::vector<double>& lse) {
  if (kernel.abi->contract.empty_lse != ATTN_EMPTY_LSE_POS_INF) return;
  for (const RowPair& pair : all_rows(p)) {
    const auto n = static_cast<std::size_t>(lse_index(p, pair.a));
    if (n < lse.size() && lse[n] == -kInfinity && make_row(p, pair.a.batch, pair.a.head, pair.a.i).size() == 0)
      lse[n] = kInfinity;
  }
}

void check_expected(Tally& tally, const Kernel& kernel, const Problem& p) {
  const Expected& want = p.source().expected;
  if (want.tensors.empty() || !inputs_are_exact(p)) return;
  for (auto [tensor, values] : want.tensors) {
    if (!p.has_output(tensor)) continue;
    if (tensor == "lse" && kernel.abi->contract.lse_base != ATTN_LSE_BASE_E) continue;  // documents print natural logs
    if (tensor == "lse" && p.source().op == Op::forward) state_empty_rows(kernel, p, values);
    const auto got = p.output(tensor);
    const auto bounds = bounds_of(kernel, p, tensor);
    for (std::size_t n = 0; n < values.size() && n < got.size(); ++n)
      within_both(tally, got[n], bounds[n], values[n], want.tolerance, 0,
                  [&, name = tensor] { return name + "[" + std::to_string(n) + "] as printed"; });
  }
}

// Pairs of parts of a merge case; all of them when there are few.
std::vector<std::pair<std::int64_t, std::int64_t>> pairs(std::int64_t parts) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (std::int64_t x = 0; x < parts; ++x)
    for (std::int64_t y = x + 1; y < parts; ++y)
      if (out.size() < 6 || (x == parts - 2 && y == parts - 1)) out.emplace_back(x, y);
  return out;
}

CheckResult check_merge(const Case& c, const Kernel& kernel, const LawContext& context) {
  Problem p(c, formats_for(kernel));
  Tally tally;
  for (const auto& [x, y] : pairs(c.shape.parts)) {
    p.select_parts(x, y);
    p.prefill(0xA5);
    const Execution run = execute(kernel, p);
    if (run.status != Outcome::pass) return stopped(run);
    tally.absorb(judge_problem(kernel, p, context));
    if (x == 0 && y == 1 && c.shape.parts == 2) check_expected(tally, kernel, p);
  }
  return tally.finish("the problem has no output elements");
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  if (c.op == Op::merge) return check_merge(c, kernel, context);
  const Run run = run_case(kernel, c);
  if (!run.ok()) return stopped(run.execution);
  Tally tally;
  tally.absorb(judge_problem(kernel, run.problem, context));
  check_expected(tally, kernel, run.problem);
  return tally.finish("the problem has no output elements");
}

}  // namespace

Law encloses_law() {
  return {"encloses", "Every element of O and LSE lies within its deterministic bound of the truth.", why_not_any,
          check, nothing_to_shape};
}

}  // namespace attest
