// A build without CUDA. Its kernels are never asked to run: why_no_device() comes first.
#include "properties/device.h"

namespace attest {

DeviceRun run_on_device(const attn_kernel&, Problem&, std::size_t) {
  return {ATTN_NO_DEVICE, why_no_device(ATTN_DEVICE_CUDA).value_or("no device"), false};
}

std::optional<std::string> device_lost() { return std::nullopt; }

}  // namespace attest
