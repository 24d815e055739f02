#include "properties/device.h"

#include "impl/cuda/probe.h"

namespace attest {

std::optional<std::string> why_no_device(std::int32_t device) {
  if (device == ATTN_DEVICE_CPU) return std::nullopt;
  if (device != ATTN_DEVICE_CUDA) return "unknown device " + std::to_string(device);
  if (attn::cuda_device().missing.empty()) return std::nullopt;
  return attn::cuda_device().missing;
}

std::vector<std::pair<std::string, std::string>> describe_device(std::int32_t device) {
  if (device != ATTN_DEVICE_CUDA) return {};
  return attn::cuda_device().facts;
}

}  // namespace attest
