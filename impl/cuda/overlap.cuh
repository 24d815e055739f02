// Programmatic dependent launch (sm_90 and newer; elsewhere nothing happens): a kernel may start while the one before
// it in the stream drains, and does its index arithmetic meanwhile.
#pragma once

#include <cuda_runtime.h>

namespace attn {

// From here on the kernel after this one may start, once every block has come here or ended.
__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Until the kernel before this one has ended and its writes are visible. Nothing is read or written before it.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches a kernel that calls wait_for_previous_kernel. overlap: DeviceFacts::overlaps.
template <class... Parameters, class... Arguments>
cudaError_t launch_overlapping(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t shared,
                               cudaStream_t stream, bool overlap, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace attn
