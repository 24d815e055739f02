#include "properties/laws/pooling.h"

#include <cmath>

#include "properties/evaluate.h"
#include "properties/laws/common.h"

namespace attest {
namespace {

void pool_problem(const Case& c, const Kernel& kernel, const LawContext& context,
                  const std::function<void(double, const ElementBound&)>& visit, Pooled& pooled) {
  const Run run = run_case(kernel, c);
  pooled.execution = run.execution;
  if (!run.ok()) return;
  const Problem& p = run.problem;
  const auto o = p.output("o");
  for (const RowIndex& at : judged_rows(p, context)) {
    const Evaluated row = evaluate_row(kernel, p, at, true);
    if (row.row.size() < 2) continue;
    if (!row.bound.expected_valid) {
      ++pooled.rows_without;
      continue;
    }
    for (std::int64_t e = 0; e < row.row.d_v; ++e) {
      const ElementBound& b = row.bound.o[e];
      const double error = (o[o_index(p, at, e)] - row.truth.o[e].hi) - row.truth.o[e].lo;
      // S and half an ulp bound uniform errors, whose variance is a third of the square of their half range.
      const double variance = (b.spread * b.spread + b.half_ulp * b.half_ulp) / 3;
      if (!(variance > 0) || !std::isfinite(variance)) continue;
      pooled.squares += error * error / variance;
      ++pooled.outputs;
      if (visit) visit(error, b);
    }
    if (pooled.outputs >= 2 * kPooledOutputs) break;
  }
}

}  // namespace

double Pooled::z() const { return std::sqrt(squares / static_cast<double>(outputs)); }

Pooled pool_outputs(const Case& c, const Kernel& kernel, const LawContext& context,
                    const std::function<void(double, const ElementBound&)>& visit) {
  Pooled pooled;
  Case x = c;
  for (int n = 0; n < kPooledProblems && !pooled.enough(); ++n) {
    x.values.seed = c.values.seed + static_cast<std::uint64_t>(n);
    pool_problem(x, kernel, context, visit, pooled);
    if (pooled.execution.status != Outcome::pass) break;
    if (pooled.outputs == 0 && pooled.rows_without > 0) break;  // other seeds change nothing about that
  }
  return pooled;
}

}  // namespace attest
