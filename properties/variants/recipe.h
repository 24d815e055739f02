// A recipe: which of several correct ways a variant takes at each step of attention. table.h lists the variants;
// forward.h is the one kernel that all of them are instances of.
#pragma once

#include <cstdint>

#include "impl/attention.h"
#include "impl/contracts.h"

namespace attest::variants {

using attn::ContractFormat;

// How n products are summed.
enum class Sum {
  fma,          // one accumulator, fused
  mul_add,      // one accumulator, product and sum rounded apart
  lanes,        // eight accumulators, fused, added as a tree at the end: what a SIMD unit does
  pairwise,     // a binary tree over the products of a block
  blocks,       // each block from zero, then added: what a tile kernel does
  compensated,  // with the error of every product and sum carried along (Ogita, Rump and Oishi 2005, Dot2)
  wide,         // in a wider format, rounded once
  mma,          // as tensor cores do: aligned to the largest term, cut off, rounded towards zero (Fasi et al. 2021)
};

enum class Exp {
  rounded,  // a wider exp, rounded once
  libm,     // the C library's own in this format
  cubic,    // 2^floor(x) times a cubic: FlashAttention-4's exp2 on FMA units. Only where the argument is in base 2
};

enum class Cuts { even, uneven, single_keys };  // of splits

// Structural, so that it can be a template argument: an instance has no choice left to make at run time.
struct Recipe {
  ContractFormat format;
  std::int32_t algorithm;  // ATTN_ALG_*
  Sum qk = Sum::fma;
  Sum pv = Sum::fma;  // of P.V and of the row sum
  Exp exp = Exp::rounded;
  std::int32_t argument = ATTN_EXP_DIFFERENCE;
  bool claims_preset = false;  // is no looser than the preset of its format and algorithm, and says no more than that
  bool reversed = false;       // last block first, last key first
  bool reciprocal = false;     // 1 / l, then products
  // ATTN_EXP_SCALED with scores in base 4: exp2 of an exact double. In base 2 they would overflow before s x does.
  bool base_4_scores = false;
  bool lse_in_base_2 = false;
  bool weights_normalised = false;  // P is divided by l before P.V, as unfused softmax does
  bool whole_tiles = false;         // a masked key has weight 0 and takes part: 0 * NaN is NaN
  bool flushes_subnormals = false;  // results below the normal range become 0
  bool threads_share_keys = false;  // blocks of keys are dealt to threads: the order depends on how many there are
  int lazy_threshold = 0;           // log2 units; 0: rescales whenever the maximum rises
  Cuts cuts = Cuts::even;
  std::int32_t merge = ATTN_MERGE_RENORMALISED;  // of splits
  std::int64_t splits = 16;                      // where the problem leaves them open
  std::int64_t block_k = 128;
};

struct Variant {
  const char* name;  // without the prefix "variant."
  const char* summary;
  Recipe recipe;
  std::int32_t state = 0;  // ATTN_STATE_* of a step or merge
};

// The Contract that a recipe keeps, derived from it field by field.
attn_contract contract_of(const Recipe& recipe);

}  // namespace attest::variants
