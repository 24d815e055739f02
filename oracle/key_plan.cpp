// How the keys of a row fall into blocks and splits, as far as the problem and the Contract say.
#include <algorithm>

#include "oracle/bound.h"

namespace attest {

// A tiling of 0 leaves the choice to the kernel; a default of 0 in the Contract means unknown, and then every key is
// charged a block (or a split) of its own: more blocks only loosen a bound.
KeyPlan key_plan(const attn_contract& contract, std::int64_t tk, const attn_tiling& tiling) {
  KeyPlan plan;
  plan.tk = tk;
  const std::int64_t all = std::max<std::int64_t>(1, tk);
  if (contract.algorithm == ATTN_ALG_STANDARD) {
    plan.block_k = all;
  } else {
    const std::int64_t asked = tiling.block_k > 0 ? tiling.block_k : contract.default_block_k;
    plan.block_k = asked > 0 ? std::min(asked, all) : 1;
  }
  if (contract.algorithm == ATTN_ALG_SPLIT) {
    const std::int64_t asked = tiling.splits > 0 ? tiling.splits : contract.max_splits;
    plan.splits = asked > 0 ? std::min(asked, all) : all;
  }
  // No Contract says where its splits begin; only a single one is known to hold every key.
  plan.keys_per_split = plan.splits == 1 ? all : 0;
  return plan;
}

}  // namespace attest
