// Work sharing among threads.
#pragma once

#include <functional>

#include "impl/core/tile_schedule.h"

namespace attn {

// Runs task(index, worker) for every index in [0, tasks), handed out in increasing order to at most `threads` workers
// numbered from 0. Returns when all are done. If the system refuses a thread the others do its share. Tasks must not
// throw and must not share anything that is written.
void parallel_for(Index threads, Index tasks, const std::function<void(Index task, Index worker)>& task);

}  // namespace attn
