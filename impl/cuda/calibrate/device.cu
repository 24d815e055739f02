// What the device, its driver and the compiler say of themselves.
#include <cstdio>
#include <fstream>

#include "impl/cuda/calibrate/device_array.h"
#include "impl/cuda/calibrate/measure.h"
#include "impl/cuda/launch.h"

namespace attn::calibrate {

namespace {

__global__ void probe() {}

// "... Module for x86_64  580.159.04  Release Build ...": the first word of digits with a dot in it.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "";
}

}  // namespace

bool describe(Device& device, std::string& why) {
  char reason[256] = "";
  const DeviceFacts* facts = device_facts(reason, sizeof reason);
  if (!facts) {
    why = reason;
    return false;
  }
  int current = 0;
  cudaDeviceProp properties{};
  cudaFuncAttributes code{};
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, current);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&device.driver_cuda);
  if (error == cudaSuccess) error = cudaRuntimeGetVersion(&device.runtime_cuda);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&code, probe);
  if (!succeeded(error, "describe", why)) return false;
  device.name = properties.name;
  device.driver = driver_version();
  device.major = facts->major, device.minor = facts->minor, device.multiprocessors = facts->multiprocessors;
  device.code = code.binaryVersion;
  device.compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
                    std::to_string(__CUDACC_VER_BUILD__);
  return true;
}

}  // namespace attn::calibrate
