// A device made of host memory, so that a whole benchmark runs on any machine. Its times are those of the CPU kernels.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "reports/tool/bench_device.h"

namespace attest::testing {

// fp32; tensors of 16-bit formats stay zeros and are not compared.
class HostDevice : public BenchDevice {
 public:
  std::vector<std::pair<std::string, std::string>> facts() override { return {{"device", "host"}}; }
  BenchClocks clocks() override { return {}; }
  std::size_t l2_bytes() override { return 4096; }
  std::size_t free_bytes() override { return std::size_t{1} << 26; }
  std::byte* reserve(std::size_t bytes) override { return aligned(memory_, bytes); }
  std::string share(std::string& why) override { return why = "host memory", ""; }
  void* workspace(std::size_t bytes) override {
    return bytes <= given_ ? at_ : at_ = aligned(scratch_, given_ = bytes);
  }
  void fill(void* data, std::int32_t dtype, std::int64_t count, std::uint64_t seed, double mean,
            double deviation) override {
    if (dtype != ATTN_FP32) return;
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<float*>(data)[i] = static_cast<float>(mean + deviation * std::sin(1.0 * i * i + 7.0 * seed));
  }
  void poison(void* data, std::size_t bytes) override { std::memset(data, 0xFF, bytes); }
  void store(void* data, std::uint64_t word) override { std::memcpy(data, &word, sizeof word); }
  BenchDifference difference(const void* a, const void* b, std::int32_t dtype, std::int64_t count) override {
    BenchDifference d;
    if (dtype != ATTN_FP32) return {0, 1, 0};
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = static_cast<const float*>(a)[i], y = static_cast<const float*>(b)[i];
      if (!std::isfinite(x - y))
        ++d.nonfinite;
      else
        d.value = std::max(d.value, std::abs(static_cast<double>(x) - y)),
        d.largest = std::max(d.largest, std::abs(1.0 * y));
    }
    return d;
  }
  void reference_scan(const attn_problem& p) override {
    for (std::int64_t r = 0; r < p.scores.shape[0]; ++r) {
      const float* x = static_cast<const float*>(p.scores.data) + r * p.scores.stride[0];
      double m = static_cast<const float*>(p.a.m.data)[r], l = static_cast<const float*>(p.a.l.data)[r];
      const double before = m;
      for (std::int64_t j = 0; j < p.scores.shape[1]; ++j) m = std::max<double>(m, x[j]);
      l *= std::exp(before - m);
      for (std::int64_t j = 0; j < p.scores.shape[1]; ++j) l += std::exp(x[j] - m);
      static_cast<float*>(p.out.m.data)[r] = static_cast<float>(m);
      static_cast<float*>(p.out.l.data)[r] = static_cast<float>(l);
    }
  }
  std::string copy(void* to, const void* from, std::size_t bytes, void*) override {
    return std::memcpy(to, from, bytes), "";
  }
  std::string run(const BenchCall& call) override { return call(0, nullptr); }
  BenchTimes time(const BenchCall& call, std::size_t sets, const BenchEffort&) override {
    BenchTimes t;
    for (std::size_t i = 0; i < sets; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (const std::string fault = call(i, nullptr); !fault.empty()) throw BenchDeviceError(fault);
      t.device.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() + 1e-9);
    }
    return t.call = t.device, t;
  }

 private:
  static std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes) {
    memory.resize(bytes + 64);
    return memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  }
  std::vector<std::byte> memory_, scratch_;
  std::byte* at_ = nullptr;
  std::size_t given_ = 0;
};

}  // namespace attest::testing
