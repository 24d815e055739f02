// A device that kernels are timed on: its memory, its clock, and what is needed to know that a timed output is right.
// The run (bench_run) knows it by this interface alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "impl/attention.h"
#include "reports/tool/bench_times.h"

namespace attest {

// The device failed; nothing more can be measured on it.
struct BenchDeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BenchClocks {
  int sm_mhz = 0, memory_mhz = 0, watts = 0, celsius = 0;  // 0: cannot be read
};

// Enqueues one call on a stream, on the inputs of a set; returns what is wrong, or "".
using BenchCall = std::function<std::string(std::size_t set, void* stream)>;

class BenchDevice {
 public:
  virtual ~BenchDevice() = default;

  // Name, driver, compilers, clocks at rest: label and value, for people and for JSON.
  virtual std::vector<std::pair<std::string, std::string>> facts() = 0;
  virtual BenchClocks clocks() = 0;
  virtual std::size_t l2_bytes() = 0;
  virtual std::size_t free_bytes() = 0;

  // One block of memory for all tensors of all cells; nullptr if there is not so much.
  virtual std::byte* reserve(std::size_t bytes) = 0;
  // A handle by which another process opens that block, as hexadecimal digits; or "" with the reason in why.
  virtual std::string share(std::string& why) = 0;
  // Scratch for kernels, kept until more is asked for; nullptr for none.
  virtual void* workspace(std::size_t bytes) = 0;

  // mean + deviation * N(0, 1), rounded to the format; the values depend on the seed and the index alone.
  virtual void fill(void* data, std::int32_t dtype, std::int64_t count, std::uint64_t seed, double mean,
                    double deviation) = 0;
  virtual void poison(void* data, std::size_t bytes) = 0;  // 0xFF bytes: NaN in every format
  virtual void store(void* data, std::uint64_t word) = 0;  // 8 bytes
  virtual BenchDifference difference(const void* a, const void* b, std::int32_t dtype, std::int64_t count) = 0;
  // A scan (step without values) by its definition, sums in fp64, into the problem's `out`.
  virtual void reference_scan(const attn_problem& problem) = 0;
  virtual std::string copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;  // enqueues

  // Runs a call once and waits: what is wrong, or "".
  virtual std::string run(const BenchCall& call) = 0;
  // Times it after warming up, with the sets in turn. Raises BenchDeviceError.
  virtual BenchTimes time(const BenchCall& call, std::size_t sets, const BenchEffort& effort) = 0;
};

// The current CUDA device, or nullptr with the reason in why: a build without CUDA, no driver, no device.
std::unique_ptr<BenchDevice> cuda_bench_device(std::string& why);

}  // namespace attest
