// From a CUDA computation to the functions of a registry row. A computation K has
//   op, needs(), refuse(problem, facts, refusal) for what it asks beyond the interface, workspace(problem) in bytes,
//   and launch(problem, workspace, facts, stream), which enqueues the work and returns CUDA's error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "impl/cuda/functions.h"
#include "impl/cuda/launch.h"
#include "impl/reject.h"
#include "impl/validate.h"

namespace attn {

template <class K>
struct CudaFunctions {
  static std::int32_t validate(const attn_problem& p, char* why, std::size_t size) {
    if constexpr (K::op == ATTN_OP_FORWARD) return validate_forward(p, K::needs(), Reads::nothing, why, size);
    if constexpr (K::op == ATTN_OP_STEP) return validate_step(p, K::needs(), why, size);
    if constexpr (K::op == ATTN_OP_MERGE) return validate_merge(p, K::needs(), why, size);
  }

  // A step or a merge needs nothing of the device but to be there, which run() sees: it is not touched here.
  static std::int32_t supports(const attn_problem* p, char* why, std::size_t size) {
    const std::int32_t status = validate(*p, why, size);
    if (status != ATTN_OK) return status;
    if constexpr (K::op == ATTN_OP_FORWARD) {
      const DeviceFacts* facts = device_facts(why, size);
      if (!facts) return ATTN_NO_DEVICE;
      Refusal refusal(why, size);
      K::refuse(*p, *facts, refusal);
      return refusal.status();
    }
    return ATTN_OK;
  }
  static std::size_t workspace_size(const attn_problem* p) { return K::workspace(*p); }

  static std::int32_t run(const attn_problem* p, void* workspace, std::size_t bytes, char* why, std::size_t size) {
    const std::int32_t status = supports(p, why, size);
    if (status != ATTN_OK) return status;
    const DeviceFacts* facts = device_facts(why, size);
    if (!facts) return ATTN_NO_DEVICE;
    if (K::workspace(*p) > bytes || (K::workspace(*p) > 0 && !workspace)) {
      if (why && size > 0)
        std::snprintf(why, size, "the workspace is smaller than workspace_size() says: allocate that many bytes");
      return ATTN_ERROR;
    }
    return launch_status(K::launch(*p, workspace, *facts, static_cast<cudaStream_t>(p->stream)), K::what, why, size);
  }

  static constexpr KernelEntry entry() { return {supports, workspace_size, run}; }
};

}  // namespace attn
