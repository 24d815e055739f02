// Folding a step kernel over blocks of keys.
#pragma once

#include <vector>

#include "properties/laws/common.h"
#include "properties/state.h"

namespace attest {

// Ends of blocks in increasing order; the last is `keys`. Blocks may be empty where asked.
std::vector<std::int64_t> even_cuts(std::int64_t keys, std::int64_t block);
std::vector<std::int64_t> random_cuts(std::int64_t keys, bool with_empty, Random& random);

struct Folded {
  Execution execution;
  StateValues state;
};

// Runs the kernel once per block, each from the state that the one before left. c supplies format and state kind.
Folded fold_blocks(const Kernel& kernel, const Case& c, const StepInputs& in, const std::vector<std::int64_t>& cuts);

// The bound of the same folds.
StepBound fold_bound(const Kernel& kernel, const StepInputs& in, std::int64_t r, const std::vector<std::int64_t>& cuts);

// Folds and judges every row against the definition over all keys at once.
Execution judge_fold(Tally& tally, const Kernel& kernel, const Case& c, const StepInputs& in,
                     const std::vector<std::int64_t>& cuts);

}  // namespace attest
