// One launch with every tensor alone in its allocation, so that a sanitizer knows where each ends and what was written.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "oracle/problem.h"
#include "properties/execute.h"
#include "properties/mutants/cuda/device_mutants.h"

namespace attest::mutants {
namespace {

std::size_t element_bytes(std::int32_t dtype) {
  return dtype == ATTN_FP64 ? 8 : dtype == ATTN_FP32 ? 4 : dtype == ATTN_U8 ? 1 : 2;
}

// Bytes from the first element to the last.
std::size_t extent(const attn_tensor& t) {
  std::int64_t last = 0;
  for (std::int32_t axis = 0; axis < t.rank; ++axis) {
    if (t.shape[axis] == 0) return 0;
    last += (t.shape[axis] - 1) * t.stride[axis];
  }
  return static_cast<std::size_t>(last + 1) * element_bytes(t.dtype);
}

std::string text_of(cudaError_t e) { return std::string(cudaGetErrorString(e)) + " (" + cudaGetErrorName(e) + ")"; }

// Memory is left to the end of the process, which has nothing else to do.
struct Placing {
  cudaError_t error = cudaSuccess;

  void* place(const void* data, std::size_t bytes, bool filled) {
    if (!data || bytes == 0 || error != cudaSuccess) return nullptr;
    void* there = nullptr;
    error = cudaMalloc(&there, bytes);
    if (error == cudaSuccess && filled) error = cudaMemcpy(there, data, bytes, cudaMemcpyHostToDevice);
    return there;
  }
};

}  // namespace

std::string run_alone(const Kernel& kernel, const Case& c) {
  Problem problem(c, formats_for(kernel));
  attn_problem p = problem.abi();
  char why[512] = "";
  if (kernel.abi->supports(&p, why, sizeof why) != ATTN_OK) return std::string("refused: ") + why;
  Placing there;
  for (attn_tensor* t : {&p.q, &p.k, &p.v, &p.mask.visible, &p.mask.additive})
    t->data = there.place(t->data, extent(*t), true);
  for (attn_tensor* t : {&p.o, &p.lse}) t->data = there.place(t->data, extent(*t), false);
  p.mask.kv_len = static_cast<const std::int64_t*>(
      there.place(p.mask.kv_len, sizeof(std::int64_t) * static_cast<std::size_t>(p.q.shape[0]), true));
  const std::size_t bytes = kernel.abi->workspace_size(&p);
  void* const workspace = there.place(&p, bytes, false);
  cudaStream_t stream = nullptr;
  if (there.error == cudaSuccess) there.error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (there.error != cudaSuccess) return "preparing the problem: " + text_of(there.error);
  p.stream = stream;
  if (kernel.abi->run(&p, workspace, bytes, why, sizeof why) != ATTN_OK) return std::string("run(): ") + why;
  if (const cudaError_t e = cudaDeviceSynchronize(); e != cudaSuccess) return "running the kernel: " + text_of(e);
  return "";
}

std::string device_name() {
  int device = 0, driver = 0;
  cudaDeviceProp facts{};
  if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&facts, device) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess)
    return "no device";
  return std::string(facts.name) + " (sm_" + std::to_string(facts.major) + std::to_string(facts.minor) +
         ", driver for CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) + ")";
}

bool device_lost() { return cudaDeviceSynchronize() != cudaSuccess; }

}  // namespace attest::mutants
