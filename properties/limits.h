// What a kernel takes, asked of its supports(): so that cases are made for it, not refused by it.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/generate.h"

namespace attest {

struct Limits {
  bool picky = false;                    // refuses odd dimensions, odd blocks or odd strides
  std::vector<std::int64_t> dimensions;  // head dimensions (d_qk = d_v) that it takes, up to 256, if it is picky
  bool odd_blocks = true;                // takes blocks and splits of any size
  bool odd_strides = true;               // takes rows that begin anywhere, elements that do not stand side by side
};

// Rows on a 16-byte border for every format, elements side by side.
Layout aligned(Layout l);

// Of a forward kernel; a kernel of another operation is not picky. Asked once for each kernel.
const Limits& limits_of(const Kernel& kernel);

// Whether a forward kernel gives O unrounded, in its accumulator's format.
bool takes_accumulator(const Kernel& kernel);

// A forward case whose q, k and v are literals, with head dimensions that a picky kernel takes: zeros are added as
// columns, which change neither a score nor another column of O. Any other case is returned as it is.
Case with_accepted_dimensions(const Case& c, const Kernel& kernel);

// A picky kernel's case with what it refuses put right, one thing after another: blocks and splits that it does not
// cut, padding and steps that it cannot load, tensor masks. Unchanged if it is taken as it is, or refused all the same.
Case made_acceptable(const Case& c, const Kernel& kernel);

}  // namespace attest
