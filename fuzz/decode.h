// Bytes -> a small forward Case. Total: every byte string is a valid case.
#pragma once

#include <string_view>

#include "fuzz/bytes.h"
#include "oracle/case.h"

namespace attest::fuzz {

// A forward case of at most 2 batch entries, 2 x 3 heads, 40 x 40 rows and keys, d <= 16, with masks, layouts, tiling
// and a value recipe or literal patterns, all chosen by `bytes`. The order in which bytes are read is the format of
// corpus/fuzz/forward: new choices are appended, so that the stored inputs keep their meaning.
Case decode_forward(Bytes& bytes);

}  // namespace attest::fuzz
