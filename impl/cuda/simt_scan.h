// The scan of rows of scores to (m, l), which is also the first half of a step.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "impl/attention.h"
#include "impl/cuda/launch.h"

namespace attn {

// Bytes for the partial (m, l) of rows that several blocks share.
std::size_t scan_workspace(const attn_problem& p);

// out.m, out.l = a extended by scores; looks at scores, a.m, a.l, out.m, out.l and tiling.splits alone.
cudaError_t launch_scan(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream);

}  // namespace attn
