// A build without CUDA: the mutants are listed, and say NOT_RUN.
#include <cstdio>

#include "properties/mutants/cuda/device_mutants.h"

namespace attest::mutants {
namespace {
constexpr const char* absent = "this build of attest has no CUDA";
}

std::int32_t run_device_forward(DeviceBug, DeviceFlavour, const attn_problem&, void*, char* why, std::size_t size) {
  std::snprintf(why, size, "%s", absent);
  return ATTN_NO_DEVICE;
}

std::string run_alone(const Kernel&, const Case&) { return absent; }

std::string device_name() { return "no device"; }

bool device_lost() { return false; }

}  // namespace attest::mutants
