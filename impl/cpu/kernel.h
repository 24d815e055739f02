// From a computation to a row of the registry. A computation K has
//   Format, needs(), workspace(problem) in bytes and compute(problem, workspace), and neither throws for what it is
//   given.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>

#include "impl/attention.h"
#include "impl/validate.h"

namespace attn {

template <class K>
struct KernelFunctions {
  static std::int32_t validate(const attn_problem& p, Reads reads, char* why, std::size_t size) {
    if constexpr (K::op == ATTN_OP_FORWARD) return validate_forward(p, K::needs(), reads, why, size);
    if constexpr (K::op == ATTN_OP_STEP) return validate_step(p, K::needs(), why, size);
    if constexpr (K::op == ATTN_OP_MERGE) return validate_merge(p, K::needs(), why, size);
  }

  static std::int32_t supports(const attn_problem* p, char* why, std::size_t size) {
    return validate(*p, Reads::entries, why, size);
  }
  static std::size_t workspace_size(const attn_problem* p) { return K::workspace(*p); }

  // Checks again what can be checked without reading masks: a caller that skipped supports() gets a message.
  static std::int32_t run(const attn_problem* p, void* workspace, std::size_t bytes, char* why, std::size_t size) {
    const std::int32_t status = validate(*p, Reads::lengths, why, size);
    if (status != ATTN_OK) return status;
    const auto fail = [&](const char* message) {
      if (why && size > 0) std::snprintf(why, size, "%s", message);
      return ATTN_ERROR;
    };
    const std::size_t needed = K::workspace(*p);
    if (needed > bytes || (needed > 0 && !workspace))
      return fail("the workspace is smaller than workspace_size() says: allocate that many bytes");
    if (reinterpret_cast<std::uintptr_t>(workspace) % 64 != 0) return fail("the workspace is not aligned to 64 bytes");
    try {
      K::compute(*p, workspace);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
    return ATTN_OK;
  }
};

template <class K>
attn_kernel make_kernel(const char* name, const char* summary, const attn_contract& contract) {
  using Functions = KernelFunctions<K>;
  return {sizeof(attn_kernel), K::op,           name, summary, contract, Functions::supports, Functions::workspace_size,
          Functions::run,      ATTN_DEVICE_CPU, 0};
}

}  // namespace attn
