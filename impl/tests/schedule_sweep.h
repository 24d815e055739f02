// The tile schedule, exhaustively: every visible pair is visited exactly once, no invisible pair escapes a mask, no
// tile is missed.
#pragma once

#include <string>

#include "impl/core/tile_schedule.h"

namespace attn::test {

// All of Tq, Tk <= limit, block sizes <= blocks, splits 1..7, no mask and both causal alignments, key lengths Tk and a
// shorter one. "" or the first configuration that is wrong.
std::string sweep_schedule(Index limit, Index blocks);

}  // namespace attn::test
