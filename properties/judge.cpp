#include <algorithm>
#include <cmath>

#include "properties/evaluate.h"
#include "properties/generate.h"
#include "properties/state.h"

namespace attest {
namespace {

CheckResult judge_forward(const Kernel& kernel, const Problem& problem, const LawContext& context) {
  const attn_contract& contract = kernel.abi->contract;
  const auto o = problem.output("o");
  const bool has_lse = problem.has_output("lse");
  const auto lse = has_lse ? problem.output("lse") : std::vector<double>{};
  Tally tally;
  double worst_o = 0;
  for (const RowIndex& at : judged_rows(problem, context)) {
    const Evaluated row = evaluate_row(kernel, problem, at);
    for (std::int64_t e = has_lse ? -1 : 0; e < row.row.d_v; ++e) {
      const double got = e < 0 ? lse[lse_index(problem, at)] : o[o_index(problem, at, e)];
      TruthElement truth;
      const Judgement j = judge_element(contract, row, e, got, &truth);
      tally.add(j, got, truth_value(truth), (e < 0 ? row.bound.lse : row.bound.o[e]).deterministic,
                [&] { return place(at, e); });
      if (e >= 0 && j.verdict == Verdict::pass && std::isfinite(j.ratio)) worst_o = std::max(worst_o, j.ratio);
    }
  }
  CheckResult result = tally.finish("the problem has no output elements");
  result.worst_o = worst_o;
  return result;
}

CheckResult judge_step(const Kernel& kernel, const Problem& problem) {
  Tally tally;
  const StepInputs in(problem);
  const StateValues got = output_state(problem);
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const StepRow row = in.row(r, 0, in.keys);
    StepBound bound(kernel.abi->contract, row.m, row.l, row.acc);
    bound.fold(row.scores, row.v);
    judge_state(tally, got, r, bound.state(), [&](Tier tier) { return step_truth(row, tier); });
  }
  return tally.finish("the problem has no output elements");
}

CheckResult judge_merge(const Kernel& kernel, const Problem& problem) {
  Tally tally;
  const attn_problem& p = problem.abi();
  const StateKind kind = problem.source().state;
  const StateValues a = read_state(p.a), b = read_state(p.b), got = output_state(problem);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const MergeRow row = merge_row(kind, {&a, &b}, r);
    const StateBound exact = exact_state(a.d_v);
    const StateBound bound =
        merge_bound(kernel.abi->contract, merge_side(kind, a, r, exact), merge_side(kind, b, r, exact));
    judge_state(tally, got, r, bound, [&](Tier tier) { return merge_truth(row, tier); });
  }
  return tally.finish("the problem has no output elements");
}

}  // namespace

std::vector<RowIndex> judged_rows(const Problem& problem, const LawContext& context) {
  const Shape& s = problem.source().shape;
  const std::int64_t heads = s.batch * s.q_heads, total = heads * s.tq;
  const auto at = [&](std::int64_t n) { return RowIndex{n / (s.q_heads * s.tq), n / s.tq % s.q_heads, n % s.tq}; };
  std::vector<std::int64_t> chosen;
  if (total <= context.max_rows) {
    for (std::int64_t n = 0; n < total; ++n) chosen.push_back(n);
  } else {
    // The first and the last row of every head of every batch entry, though they be more than the allowance: a head
    // that nobody looks at may hold anything. Then rows where tiles, vectors and the causal diagonal begin and end, in
    // a head of its own for each, up to half of the allowance, and a random rest.
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i : {std::int64_t{0}, s.tq - 1}) chosen.push_back(head * s.tq + i);
    const std::int64_t br = std::max<std::int64_t>(problem.source().tiling.block_q, 1);
    const std::int64_t diagonal = std::abs(s.tk - s.tq);
    const auto ends = static_cast<std::int64_t>(chosen.size());
    std::vector<std::int64_t> edges;
    for (std::int64_t base :
         {br, 2 * br, s.tq / br * br, diagonal, s.tq - diagonal, std::int64_t{8}, std::int64_t{16}, std::int64_t{32},
          std::int64_t{64}, std::int64_t{128}, std::int64_t{256}, std::int64_t{1024}})
      for (std::int64_t d : {-1, 0, 1}) edges.push_back(base + d);
    Random random(context.seed, 0x726f7773);
    for (std::int64_t i : edges) {
      if (i < 0 || i >= s.tq) continue;
      if (static_cast<std::int64_t>(chosen.size()) - ends >= context.max_rows / 2) break;
      chosen.push_back(random.between(0, heads - 1) * s.tq + i);
    }
    while (static_cast<std::int64_t>(chosen.size()) < context.max_rows) chosen.push_back(random.between(0, total - 1));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }
  std::vector<RowIndex> rows;
  rows.reserve(chosen.size());
  for (std::int64_t n : chosen) rows.push_back(at(n));
  return rows;
}

CheckResult judge_problem(const Kernel& kernel, const Problem& problem, const LawContext& context) {
  switch (problem.source().op) {
    case Op::forward:
      return judge_forward(kernel, problem, context);
    case Op::step:
      return judge_step(kernel, problem);
    case Op::merge:
      return judge_merge(kernel, problem);
  }
  return {};
}

}  // namespace attest
