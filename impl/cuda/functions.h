// The doors between the registry, which is plain C++ and lists CUDA kernels on every machine, and the code that nvcc
// compiles. A build without CUDA answers each of them from absent.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/attention.h"

namespace attn {

// The three functions of a registry row.
struct KernelEntry {
  std::int32_t (*supports)(const attn_problem*, char*, std::size_t);
  std::size_t (*workspace_size)(const attn_problem*);
  std::int32_t (*run)(const attn_problem*, void*, std::size_t, char*, std::size_t);
};

enum class CudaFormat { fp32, fp16, bf16 };

// Forward kernels of any device from sm_80 on: fp16 and bf16 by mma.sync, fp32 by FMAs.
KernelEntry cuda_fa1(CudaFormat format);
KernelEntry cuda_fa2(CudaFormat format);
KernelEntry cuda_causal(CudaFormat format);
KernelEntry cuda_decode(CudaFormat format);

// Forward for sm_90a: wgmma and the tensor memory accelerator, warp-specialised. fp16 and bf16 only.
KernelEntry cuda_hopper(CudaFormat format);

// Scan of rows of scores to (m, l); one step with values in the format; merges of states in fp32.
KernelEntry cuda_scan();
KernelEntry cuda_step(CudaFormat format);
KernelEntry cuda_merge(std::int32_t state_kind);

}  // namespace attn
