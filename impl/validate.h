// What a problem must be before a kernel computes it. Everything else is refused with a sentence that says what is
// wrong and what to do about it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/attention.h"

namespace attn {

// What a kernel asks of its problems beyond the interface itself.
struct Requirements {
  std::int32_t storage = ATTN_FP32;      // of q, k, v (of v in a step)
  std::int32_t accumulator = ATTN_FP32;  // of lse, scores, states
  bool needs_causal = false;
  std::int32_t state_kind = 0;  // of a step or merge
};

// How far a check may look through data pointers.
enum class Reads {
  nothing,  // device memory: shapes, strides, formats and addresses only
  lengths,  // kv_len
  entries   // kv_len, and every entry of an additive mask
};

// ATTN_OK, or ATTN_REJECTED with the reason in why.
std::int32_t validate_forward(const attn_problem& p, const Requirements& needs, Reads reads, char* why,
                              std::size_t why_size);
std::int32_t validate_step(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size);
std::int32_t validate_merge(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size);

}  // namespace attn
