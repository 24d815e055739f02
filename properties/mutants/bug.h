// The planted bugs. One enumerator is one line (or a few) changed in a small readable kernel made for that purpose.
#pragma once

#include <cstdint>

#include "impl/attention.h"

namespace attest::mutants {

enum class Bug {
  none,            // the control: the readable kernel as it should be; it must pass everything
  none_whole_row,  // the same with all keys in one block, for the Contract that promises that tiling changes no bit

  // forward: masks, empty rows, sentinels
  sentinel_small,          // running maximum starts at -1e4
  max_stored_as_zero,      // running maximum starts at 0
  no_empty_guard,          // 0 / 0 on a row without visible keys
  empty_row_mean,          // a row without visible keys attends all masked keys
  empty_row_lse_zero,      // its LSE is 0
  empty_block_nan,         // exp(-inf - -inf) when the first block is masked
  masked_key_leaks_value,  // 0 * v added for masked keys: NaN leaks
  masked_score_added,      // the mask is added to the score: NaN + -inf is NaN
  mask_ignored,            // boolean mask not read
  additive_ignored,        // additive mask not read
  additive_in_16_bit,      // masked score is score - 6e4 instead of -inf
  kv_len_ignored,
  kv_len_of_first_batch,
  key_at_kv_len_visible,  // j <= kv_len
  causal_ignored,
  causal_top_left_always,
  causal_bottom_right_always,
  causal_off_by_one,  // the diagonal itself is masked
  future_key_leaks,   // one future key is visible
  skips_tiles_without_causal,
  full_tile_misjudged,    // the partial tile that touches the diagonal is taken for full
  causal_end_by_block_q,  // key loop bound computed with Br where Bc belongs
  nan_swallowed,          // NaN outputs become 0
  nan_max_dropped,        // a row of NaN scores is taken for an empty one
  masked_inf_leaks,       // 0 * v for keys beyond kv_len, with NaN in v made 0, but not inf
  scale_unchecked,        // supports() takes a negative scale

  // forward: tails and addressing
  last_key_dropped,
  tail_key_weight_one,  // the missing keys of the last tile weigh exp(0 - m)
  tail_tile_skipped,
  last_row_unwritten,  // the last row of a partial query block
  empty_rows_unwritten,
  lse_unwritten,  // LSE of rows without visible keys
  beta_zero,      // O = 0 * O + result: a NaN in the buffer stays
  no_lse_path,    // O is not divided by l where LSE is not wanted
  gqa_modulo,
  gqa_first_head,
  row_stride_dense,     // row stride of K assumed d
  head_stride_swapped,  // strides of V's batch and head swapped
  output_stride_dense,
  offset_16_bit,           // key offsets wrap at 2^16 elements
  head_dim_multiple_of_8,  // the tail of d_qk is dropped
  value_dim_is_head_dim,   // only min(d_qk, d_v) columns are computed
  reads_past_end,          // one key beyond the last takes part with weight 0
  writes_past_end,
  writes_input,  // Q is scaled in place
  workspace_quadratic,

  // forward: online softmax
  rescale_missing,
  rescale_inverted,
  rescale_of_sum_missing,
  rescale_wrong_frame,  // unscaled difference in the rescale
  no_max_subtraction,
  max_of_last_block,  // the maximum may fall from block to block
  scale_twice,
  scale_ignored,  // 1 / sqrt(d) whatever was asked for
  scale_off_by_2_pow_minus_10,

  // forward: precision
  scores_in_16_bit,
  accumulator_in_16_bit,
  sum_in_16_bit,
  max_in_16_bit,
  p_truncated,
  p_rounds_down,                  // P is truncated wherever that stays within u
  fast_exp,                       // a polynomial with 2^-11 relative error
  scores_twice,                   // one dot product for the sum, another for P V, in different orders
  sum_chopped,                    // up to 512 keys, every other is added to l by an adder that truncates
  long_sum_chopped,               // beyond 512 keys, all are
  half_reciprocal,                // 1 / l rounded to 16 bits
  sum_of_rounded_p_dropped_tail,  // weights under 2^-8 are dropped from O but stay in l

  // forward: LSE
  lse_base_2,
  lse_without_max,
  lse_off_by_constant,
  lse_negated_log,
  lse_unscaled_max,

  // forward: splits and bitwise promises
  split_last_dropped,
  split_overlaps,
  split_empty_garbage,
  split_no_far_guard,  // weights exp(lse) without their maximum
  split_not_normalised,
  split_partial_in_16_bit,
  split_count_fixed,  // room for 16 splits: beyond them LSE reads as 0
  splits_by_batch,
  nondeterministic_order,
  order_by_layout,
  order_by_group,
  tile_wide_max,  // one maximum for two neighbouring rows
  overflow_vote,  // overflowing scores of a row send its neighbour another way
  order_by_threads,
  order_by_value,  // columns that begin above 1 are summed from the far end
  order_by_block_q,
  value_dependent_skip,  // a block whose maximum lies far below is dropped although it still counts

  // step and merge
  step_no_guard,
  step_sum_not_rescaled,
  step_acc_not_rescaled,
  step_max_not_kept,
  step_drops_last_key,
  step_masked_block_rescales,  // by an exp that is not exact at 0
  step_max_of_whole_vectors,   // reads behind the row, where fmax drops a NaN
  step_rounded_product,        // exp2(fl(x log2 e) - fl(m log2 e)): an error of u |m|, whatever the gap
  step_exponent_16_bit,        // the exponent of exp has 16 bits, its clamp thinks 17
  merge_base_2,
  merge_empty_nan,
  merge_nan_is_empty,       // !(m > -inf)
  merge_skips_empty_block,  // eight rows without a second part are not written
  merge_clips_sum,          // l beyond a block's width is cut to it
  merge_far_overflow,
  merge_weights_swapped,
  merge_by_fma,          // promises to commute, does not
  merge_empty_rescales,  // the identity changes the last bit
  merge_counts_once,     // l of the second part is taken as it is
};

// How many there are, the controls included.
inline constexpr int kBugs = static_cast<int>(Bug::merge_counts_once) + 1;

// One problem through the readable kernels with one bug planted.
int32_t run_forward(Bug bug, const attn_problem& p);
int32_t run_step(Bug bug, const attn_problem& p);
int32_t run_merge(Bug bug, const attn_problem& p);

}  // namespace attest::mutants
