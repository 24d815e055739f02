// The laws by name. Each stands in the file of its family; laws.cpp lists them.
#pragma once

#include "properties/law.h"

namespace attest {

Law encloses_law();
Law expected_law();
Law unbiased_law();
Law fully_masked_row_law();
Law merge_identity_law();
Law merge_commutes_law();
Law merge_associates_law();
Law chunking_law();
Law step_folds_law();
Law swings_law();
Law poison_law();
Law causal_prefix_law();
Law unwritten_law();
Law untouched_law();
Law deterministic_law();
Law batch_invariant_law();
Law tiling_invariant_law();
Law strides_law();
Law gqa_expands_law();
Law permutes_law();
Law hull_law();
Law scales_law();
Law shifts_law();
Law decode_is_prefill_law();
Law option_matters_law();
Law nan_reaches_law();

}  // namespace attest
