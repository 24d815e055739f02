// `attest calibrate`: measures the constants of the CUDA Contracts on the device at hand, and judges what they claim.
#pragma once

#include <cstdint>
#include <string>

namespace attest {

struct CalibrateOptions {
  std::uint64_t seed = 1;
  std::int64_t dots = std::int64_t{1} << 28;  // random dot products for each instruction and kind of input
  std::string json;                           // path, "-" for standard output, or empty
  std::string markdown;                       // path, or empty
  std::string require;                        // "cuda": no device is exit code 3
  bool quiet = false;
};

// Prints one table constant x (documented, measured, claimed). Returns 0 if every claim holds or there is no device, 1
// if a Contract claims less than was measured, 3 if a device is required and there is none. Raises UsageError.
int run_calibrate(const CalibrateOptions& options);

}  // namespace attest
