// A build without CUDA.
#include "properties/device.h"

namespace attest {

namespace {
constexpr const char* absent =
    "this build of attest has no CUDA: configure with -DATTEST_CUDA=ON where nvcc is installed";
}

std::optional<std::string> why_no_device(std::int32_t device) {
  if (device == ATTN_DEVICE_CPU) return std::nullopt;
  return absent;
}

DeviceRun run_on_device(const attn_kernel&, Problem&, std::size_t) { return {ATTN_NO_DEVICE, absent, false}; }

}  // namespace attest
