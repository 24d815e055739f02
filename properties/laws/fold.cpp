#include "properties/laws/fold.h"

#include <algorithm>

namespace attest {

std::vector<std::int64_t> even_cuts(std::int64_t keys, std::int64_t block) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t end = block; end < keys; end += block) cuts.push_back(end);
  cuts.push_back(keys);
  return cuts;
}

std::vector<std::int64_t> random_cuts(std::int64_t keys, bool with_empty, Random& random) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t n = random.between(0, 5); n > 0; --n) cuts.push_back(random.between(0, keys));
  cuts.push_back(keys);
  std::sort(cuts.begin(), cuts.end());
  if (!with_empty) {
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.size() > 1 && cuts.front() == 0) cuts.erase(cuts.begin());
  }
  return cuts;
}

Folded fold_blocks(const Kernel& kernel, const Case& c, const StepInputs& in, const std::vector<std::int64_t>& cuts) {
  Folded out{{}, in.initial};
  std::int64_t begin = 0;
  for (std::int64_t end : cuts) {
    Case block = c;
    block.expected = {};
    block.mask = {};  // it stands in the scores
    block.values.tensors.clear();
    block.shape.tk = end - begin;
    std::vector<double> scores, v;
    for (std::int64_t r = 0; r < in.rows; ++r)
      scores.insert(scores.end(), in.scores.begin() + r * in.keys + begin, in.scores.begin() + r * in.keys + end);
    if (in.d_v > 0) v.assign(in.v.begin() + begin * in.d_v, in.v.begin() + end * in.d_v);
    set_literal(block, "m", out.state.m);
    set_literal(block, "l", out.state.l);
    if (in.d_v > 0) set_literal(block, "acc", out.state.acc);
    if (!scores.empty()) set_literal(block, "scores", std::move(scores));
    if (!v.empty()) set_literal(block, "v", std::move(v));
    Run run = run_case(kernel, block);
    out.execution = run.execution;
    if (!run.ok()) return out;
    out.state = output_state(run.problem);
    begin = end;
  }
  return out;
}

StepBound fold_bound(const Kernel& kernel, const StepInputs& in, std::int64_t r,
                     const std::vector<std::int64_t>& cuts) {
  const StepRow start = in.row(r, 0, 0);
  StepBound bound(kernel.abi->contract, start.m, start.l, start.acc);
  std::int64_t begin = 0;
  for (std::int64_t end : cuts) {
    const StepRow block = in.row(r, begin, end);
    bound.fold(block.scores, block.v);
    begin = end;
  }
  return bound;
}

Execution judge_fold(Tally& tally, const Kernel& kernel, const Case& c, const StepInputs& in,
                     const std::vector<std::int64_t>& cuts) {
  const Folded folded = fold_blocks(kernel, c, in, cuts);
  if (folded.execution.status != Outcome::pass) return folded.execution;
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const StepRow row = in.row(r, 0, in.keys);
    judge_state(tally, folded.state, r, fold_bound(kernel, in, r, cuts).state(),
                [&](Tier tier) { return step_truth(row, tier); });
  }
  return folded.execution;
}

}  // namespace attest
