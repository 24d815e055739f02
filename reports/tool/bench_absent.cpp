// A build without CUDA.
#include "properties/device.h"
#include "reports/tool/bench_device.h"

namespace attest {

std::unique_ptr<BenchDevice> cuda_bench_device(std::string& why) {
  why = why_no_device(ATTN_DEVICE_CUDA).value_or("this build of attest has no CUDA");
  return nullptr;
}

}  // namespace attest
