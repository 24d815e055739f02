// A problem whose pointers are moved from one memory to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "impl/attention.h"

namespace attest {

// Memory that was copied: its bytes here, and where they stand there.
struct MovedSpan {
  std::span<const std::byte> here;
  std::byte* there;
};

// The same problem with every data pointer replaced by where its bytes stand. A pointer into none of the spans is left
// out (null): it belongs to a tensor without elements.
attn_problem moved_problem(const attn_problem& problem, std::span<const MovedSpan> spans);

}  // namespace attest
