#include "impl/cuda/launch.h"

#include <cstdio>
#include <mutex>

#include "impl/attention.h"

namespace attn {

namespace {

// Its code is chosen among the same architectures as that of every other kernel.
__global__ void probe_code() {}

struct Slot {
  std::once_flag once;
  DeviceFacts facts;
  cudaError_t error = cudaSuccess;
};

cudaError_t read_facts(int device, DeviceFacts& facts) {
  int shared = 0;
  const auto attribute = [device](int& value, cudaDeviceAttr which) {
    return cudaDeviceGetAttribute(&value, which, device);
  };
  cudaError_t error = attribute(facts.major, cudaDevAttrComputeCapabilityMajor);
  if (error == cudaSuccess) error = attribute(facts.minor, cudaDevAttrComputeCapabilityMinor);
  if (error == cudaSuccess) error = attribute(facts.multiprocessors, cudaDevAttrMultiProcessorCount);
  if (error == cudaSuccess) error = attribute(shared, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  facts.device = device;
  facts.shared_per_block = static_cast<std::size_t>(shared);
  if (error != cudaSuccess || facts.major < 9) return error;
  // A new device that runs code made for an old one, by way of PTX, has kernels that do not wait.
  cudaFuncAttributes code{};
  error = cudaFuncGetAttributes(&code, probe_code);
  facts.overlaps = code.ptxVersion >= 90;
  return error;
}

const DeviceFacts* absent(cudaError_t error, char* why, std::size_t size) {
  if (why && size > 0) std::snprintf(why, size, "no CUDA device: %s", cudaGetErrorString(error));
  return nullptr;
}

}  // namespace

const DeviceFacts* device_facts(char* why, std::size_t why_size) {
  static Slot slots[most_devices];
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess || device >= most_devices) return absent(error, why, why_size);
  Slot& slot = slots[device];
  std::call_once(slot.once, [&] { slot.error = read_facts(device, slot.facts); });
  if (slot.error != cudaSuccess) return absent(slot.error, why, why_size);
  if (slot.facts.major < 8) {
    if (why && why_size > 0)
      std::snprintf(why, why_size, "the CUDA device is sm_%d%d; these kernels need sm_80 or newer", slot.facts.major,
                    slot.facts.minor);
    return nullptr;
  }
  return &slot.facts;
}

std::int32_t launch_status(cudaError_t error, const char* what, char* why, std::size_t why_size) {
  if (error == cudaSuccess) return ATTN_OK;
  if (why && why_size > 0)
    std::snprintf(why, why_size, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
  return ATTN_ERROR;
}

}  // namespace attn
