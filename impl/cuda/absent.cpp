// A build without CUDA lists the CUDA kernels all the same; each says that it cannot run and what would change that.
#include <cstdio>

#include "impl/cuda/functions.h"
#include "impl/cuda/probe.h"

namespace attn {

namespace {

constexpr const char* reason = "built without CUDA: configure with -DATTEST_CUDA=ON where nvcc is installed";

std::int32_t no_device(char* why, std::size_t size) {
  if (why && size > 0) std::snprintf(why, size, "%s", reason);
  return ATTN_NO_DEVICE;
}

constexpr KernelEntry absent = {
    [](const attn_problem*, char* why, std::size_t size) { return no_device(why, size); },
    [](const attn_problem*) { return std::size_t{0}; },
    [](const attn_problem*, void*, std::size_t, char* why, std::size_t size) { return no_device(why, size); }};

}  // namespace

const CudaDevice& cuda_device() {
  static const CudaDevice none = {reason, 0, {}};
  return none;
}

KernelEntry cuda_fa1(CudaFormat) { return absent; }
KernelEntry cuda_fa2(CudaFormat) { return absent; }
KernelEntry cuda_causal(CudaFormat) { return absent; }
KernelEntry cuda_decode(CudaFormat) { return absent; }
KernelEntry cuda_hopper(CudaFormat) { return absent; }
KernelEntry cuda_scan() { return absent; }
KernelEntry cuda_step(CudaFormat) { return absent; }
KernelEntry cuda_merge(std::int32_t) { return absent; }

}  // namespace attn
