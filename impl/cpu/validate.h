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

// ATTN_OK, or ATTN_REJECTED with the reason in why. `entries`: also read every entry of an additive mask.
std::int32_t validate_forward(const attn_problem& p, const Requirements& needs, bool entries, char* why,
                              std::size_t why_size);
std::int32_t validate_step(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size);
std::int32_t validate_merge(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size);

}  // namespace attn
