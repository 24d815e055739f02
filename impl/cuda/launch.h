// What every CUDA kernel shares on the host side: is there a device, did the launch succeed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace attn {

// Facts of the current device that launches depend on, read once.
struct DeviceFacts {
  int device = 0;  // its number, below most_devices
  int major = 0, minor = 0;
  int multiprocessors = 0;
  std::size_t shared_per_block = 0;  // bytes a block may opt in to
  bool overlaps = false;             // kernels wait for the one before them themselves: see overlap.cuh
};
inline constexpr int most_devices = 64;

// The current device, or nullptr with the reason in why (no driver, no device, older than sm_80).
const DeviceFacts* device_facts(char* why, std::size_t why_size);

// ATTN_OK, or ATTN_ERROR with what was launched and CUDA's name and text of the error in why.
std::int32_t launch_status(cudaError_t error, const char* what, char* why, std::size_t why_size);

// Raises the limit of dynamic shared memory of a kernel once; CUDA grants 48 KiB without being asked.
template <class Function>
cudaError_t allow_shared(Function* function, std::size_t bytes) {
  if (bytes <= 48 * 1024) return cudaSuccess;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(function), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

}  // namespace attn
