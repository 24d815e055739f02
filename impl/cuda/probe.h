// What the current CUDA device is, found out in a process of its own: a process that has used CUDA cannot fork workers
// that use it too.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attn {

struct CudaDevice {
  std::string missing;  // why there is none; empty if there is one
  int major = 0;        // 8 for sm_80
  std::vector<std::pair<std::string, std::string>> facts;
};

// Asked once. The first call forks and should come before other threads do.
const CudaDevice& cuda_device();

}  // namespace attn
