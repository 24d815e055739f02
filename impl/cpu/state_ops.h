// Operations on running states: scan of rows to (m, l), one step of the online softmax, and merges.
#pragma once

#include <cstddef>

#include "impl/attention.h"
#include "impl/cpu/formats.h"
#include "impl/validate.h"

namespace attn {

// (m, l, acc) + one block of scores and values; with Kind = ATTN_STATE_ML the scan of rows to (m, l). Scores are in the
// accumulator format and already scaled, -inf is a blocked key, whose value is not touched. No workspace.
template <class F, std::int32_t Kind>
struct Step {
  using Format = F;
  static constexpr std::int32_t op = ATTN_OP_STEP;
  static Requirements needs() { return {dtype_of<typename F::Storage>, dtype_of<typename F::Acc>, false, Kind}; }
  static std::size_t workspace(const attn_problem&) { return 0; }
  static void compute(const attn_problem& p, void* workspace);
};

// Two states into one, symmetric in them bit for bit. An empty side leaves the other as it is.
template <class F, std::int32_t Kind>
struct Merge {
  using Format = F;
  static constexpr std::int32_t op = ATTN_OP_MERGE;
  static Requirements needs() { return {dtype_of<typename F::Storage>, dtype_of<typename F::Acc>, false, Kind}; }
  static std::size_t workspace(const attn_problem&) { return 0; }
  static void compute(const attn_problem& p, void* workspace);
};

}  // namespace attn
