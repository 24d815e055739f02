// What a recipe promises: the preset of its format and algorithm, changed where the recipe does something else.
#include "properties/variants/exps.h"
#include "properties/variants/sums.h"

namespace attest::variants {
namespace {

// A tree rounds its products; the rest fuse, or round less than fusing does.
std::int32_t accumulation_of(Sum how) {
  if (how == Sum::mma) return ATTN_ACC_TENSOR_CORE;
  return how == Sum::mul_add || how == Sum::pairwise ? ATTN_ACC_MUL_ADD : ATTN_ACC_FMA;
}

// One accumulator, keys in increasing order, and no rounding that such an accumulator would not make.
bool is_sequential(const Recipe& r) {
  const bool in_order = r.pv == Sum::fma || r.pv == Sum::mul_add || r.pv == Sum::wide || r.pv == Sum::compensated;
  return in_order && !r.reversed && !r.threads_share_keys;
}

}  // namespace

attn_contract contract_of(const Recipe& r) {
  // Weights that are divided before P.V are O normalised in the one block that there is: what underflows there is not
  // divided by the row sum any more.
  attn_contract c = attn::preset(r.format, r.weights_normalised ? ATTN_ALG_FA1 : r.algorithm);
  if (r.claims_preset) return c;
  if (r.algorithm == ATTN_ALG_STANDARD) c.promises |= ATTN_PROMISE_TILING_INVARIANT;
  const bool fp64 = c.acc_dtype == ATTN_FP64;
  c.preset = nullptr;
  c.qk_accumulation = accumulation_of(r.qk);
  c.pv_accumulation = accumulation_of(r.pv);
  c.sum_order = is_sequential(r) ? ATTN_SUM_SEQUENTIAL : ATTN_SUM_ANY;
  if (r.qk == Sum::mma || r.pv == Sum::mma) c.mma_terms = mma_terms, c.mma_fraction_bits = mma_fraction_bits;
  c.exp_form = r.argument;
  c.exp_error = r.exp == Exp::cubic  ? cubic_error
                : fp64               ? libm_error_fp64
                : r.exp == Exp::libm ? libm_error_fp32
                                     : rounded_error_fp32;
  c.rescale_exp_error = c.exp_error;
  c.log_relative = fp64 ? libm_log_error_fp64 : r.exp == Exp::libm ? libm_log_error_fp32 : rounded_error_fp32;
  c.division_error = r.reciprocal ? 2 : 1;
  if (r.lazy_threshold > 0) c.rescale = ATTN_RESCALE_LAZY, c.lazy_threshold = r.lazy_threshold;
  if (r.algorithm == ATTN_ALG_SPLIT) c.max_splits = r.splits;
  if (r.algorithm == ATTN_ALG_SPLIT || r.algorithm == ATTN_ALG_MERGE) c.split_merge = r.merge;
  // fma(a, b, c d) is not fma(c, d, a b).
  if (r.algorithm == ATTN_ALG_MERGE && r.pv != Sum::mul_add) c.promises &= ~ATTN_PROMISE_COMMUTATIVE_MERGE;
  if (r.lse_in_base_2) c.lse_base = ATTN_LSE_BASE_2;
  c.flushes_subnormals = r.flushes_subnormals;
  if (r.whole_tiles) c.isolates_nonfinite = ATTN_ISOLATES_HEAD;
  if (r.threads_share_keys) c.promises &= ~ATTN_PROMISE_DETERMINISTIC;
  if (r.algorithm <= ATTN_ALG_SPLIT) c.default_block_k = r.block_k;
  c.sources =
      "orders, fusing, formats, rescale and cuts: by construction (properties/variants/recipe.h); exp and log: "
      "properties/variants/exps.h, measured again by properties/tests/variants_test.cpp; division: IEEE, or a "
      "correctly "
      "rounded reciprocal and a product";
  return c;
}

}  // namespace attest::variants
