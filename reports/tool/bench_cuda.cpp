// Timing by CUDA events on a stream of its own.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "properties/device.h"
#include "reports/tool/bench_clocks.h"
#include "reports/tool/bench_cuda_kernels.h"
#include "reports/tool/bench_device.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

void must(cudaError_t e, const char* during) {
  if (e != cudaSuccess)
    throw BenchDeviceError(std::string(during) + ": " + cudaGetErrorString(e) + " (" + cudaGetErrorName(e) + ")");
}

std::string version(int number) { return text("%d.%d", number / 1000, number % 1000 / 10); }

class CudaBench final : public BenchDevice {
 public:
  CudaBench() {
    must(cudaGetDevice(&device_), "cudaGetDevice");
    must(cudaGetDeviceProperties(&properties_, device_), "cudaGetDeviceProperties");
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreate(&begin_), "cudaEventCreate");
    must(cudaEventCreate(&end_), "cudaEventCreate");
    must(cudaMalloc(&gap_, sizeof(BenchGap)), "cudaMalloc");
    char bus[32] = "";
    must(cudaDeviceGetPCIBusId(bus, sizeof bus, device_), "cudaDeviceGetPCIBusId");
    management_ = std::make_unique<BenchManagement>(bus);
  }
  // Memory and streams end with the process, which ends with the run.

  std::vector<std::pair<std::string, std::string>> facts() override {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    return {{"device", properties_.name},
            {"compute capability", text("%d.%d", properties_.major, properties_.minor)},
            {"multiprocessors", std::to_string(properties_.multiProcessorCount)},
            {"memory", text("%.1f GiB", static_cast<double>(properties_.totalGlobalMem) / (1 << 30))},
            {"L2 cache", text("%.0f MiB", static_cast<double>(properties_.l2CacheSize) / (1 << 20))},
            {"driver", management_->driver() + ", for CUDA " + version(driver)},
            {"CUDA runtime", version(runtime)},
            {"nvcc", bench_cuda_compiler()},
            {"C++ compiler", __VERSION__},
            {"highest SM clock", text("%d MHz", management_->highest_sm_mhz())},
            {"power limit", text("%d W", management_->power_limit_watts())}};
  }
  BenchClocks clocks() override { return management_->clocks(); }
  std::size_t l2_bytes() override { return static_cast<std::size_t>(properties_.l2CacheSize); }
  std::size_t free_bytes() override {
    std::size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  std::byte* reserve(std::size_t bytes) override {
    if (cudaMalloc(&block_, bytes) != cudaSuccess) {
      cudaGetLastError();
      block_ = nullptr;
    }
    return static_cast<std::byte*>(block_);
  }
  std::string share(std::string& why) override {
    cudaIpcMemHandle_t handle;
    if (const cudaError_t e = cudaIpcGetMemHandle(&handle, block_); e != cudaSuccess) {
      cudaGetLastError();
      why = std::string("cudaIpcGetMemHandle: ") + cudaGetErrorString(e);
      return "";
    }
    std::string digits;
    for (const char c : handle.reserved) digits += text("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    return digits;
  }
  void* workspace(std::size_t bytes) override {
    if (bytes > workspace_bytes_) {
      must(cudaFree(workspace_), "cudaFree");
      workspace_ = nullptr, workspace_bytes_ = 0;
      must(cudaMalloc(&workspace_, bytes), "allocating a workspace");
      workspace_bytes_ = bytes;
    }
    return bytes > 0 ? workspace_ : nullptr;
  }

  void fill(void* data, std::int32_t dtype, std::int64_t count, std::uint64_t seed, double mean,
            double deviation) override {
    must(bench_fill(data, dtype, count, seed, static_cast<float>(mean), static_cast<float>(deviation), stream_),
         "filling inputs");
    wait("filling inputs");
  }
  void poison(void* data, std::size_t bytes) override {
    must(cudaMemsetAsync(data, 0xFF, bytes, stream_), "poisoning outputs");
    wait("poisoning outputs");
  }
  void store(void* data, std::uint64_t word) override {
    must(cudaMemcpy(data, &word, sizeof word, cudaMemcpyHostToDevice), "writing to the device");
  }
  BenchDifference difference(const void* a, const void* b, std::int32_t dtype, std::int64_t count) override {
    BenchGap gap = {};
    must(cudaMemsetAsync(gap_, 0, sizeof gap, stream_), "comparing outputs");
    must(bench_gap(a, b, dtype, count, static_cast<BenchGap*>(gap_), stream_), "comparing outputs");
    must(cudaMemcpyAsync(&gap, gap_, sizeof gap, cudaMemcpyDeviceToHost, stream_), "comparing outputs");
    wait("comparing outputs");
    float value = 0, largest = 0;
    std::memcpy(&value, &gap.value, sizeof value);
    std::memcpy(&largest, &gap.largest, sizeof largest);
    return {value, largest, static_cast<long long>(gap.nonfinite)};
  }
  void reference_scan(const attn_problem& problem) override {
    must(bench_reference_scan(problem, stream_), "computing the reference of a scan");
    wait("computing the reference of a scan");
  }
  std::string copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    const cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? "" : cudaGetErrorString(e);
  }

  std::string run(const BenchCall& call) override {
    const std::string fault = call(0, stream_);
    wait("running a kernel");
    return fault;
  }

  BenchTimes time(const BenchCall& call, std::size_t sets, const BenchEffort& effort) override {
    sets_ = std::max<std::size_t>(sets, 1);
    for (int i = 0; i < 3; ++i) queued(call, 1);
    const double once = std::max(queued(call, 1), 1e-7);
    BenchTimes times;
    times.calls = static_cast<int>(std::clamp(effort.sample / once, 1.0, static_cast<double>(effort.most_calls)));
    const int samples = static_cast<int>(
        std::clamp(effort.seconds / (times.calls * once), 2.0, static_cast<double>(effort.most_samples)));
    for (int i = 0; i < samples; ++i) {
      times.device.push_back(queued(call, times.calls));
      times.hidden = times.hidden && hidden_;
    }
    for (int i = 0; i < std::min(samples, effort.most_alone); ++i) times.call.push_back(alone(call));
    return times;
  }

 private:
  void wait(const char* during) { must(cudaStreamSynchronize(stream_), during); }
  double elapsed() {
    float milliseconds = 0;
    must(cudaEventSynchronize(end_), "running a kernel");
    must(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }
  void enqueue(const BenchCall& call) {
    if (const std::string fault = call(++turn_ % sets_, stream_); !fault.empty()) throw BenchDeviceError(fault);
  }

  // Seconds of one call out of `calls` back to back. The device spins until all of them are enqueued; if it did not
  // spin long enough, once more with twice as long.
  double queued(const BenchCall& call, int calls) {
    constexpr std::uint64_t longest = 20000000;  // ns
    while (true) {
      must(bench_spin(spin_, stream_), "spinning");
      must(cudaEventRecord(begin_, stream_), "cudaEventRecord");
      for (int i = 0; i < calls; ++i) enqueue(call);
      must(cudaEventRecord(end_, stream_), "cudaEventRecord");
      hidden_ = cudaEventQuery(begin_) == cudaErrorNotReady;
      cudaGetLastError();
      const double seconds = elapsed() / calls;
      if (hidden_ || spin_ >= longest) return seconds;
      spin_ *= 2;
    }
  }
  double alone(const BenchCall& call) {
    wait("running a kernel");
    must(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    enqueue(call);
    must(cudaEventRecord(end_, stream_), "cudaEventRecord");
    return elapsed();
  }

  int device_ = 0;
  cudaDeviceProp properties_ = {};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  void *block_ = nullptr, *workspace_ = nullptr, *gap_ = nullptr;
  std::size_t workspace_bytes_ = 0, sets_ = 1, turn_ = 0;
  std::uint64_t spin_ = 50000;  // ns
  bool hidden_ = true;
  std::unique_ptr<BenchManagement> management_;
};

}  // namespace

std::unique_ptr<BenchDevice> cuda_bench_device(std::string& why) {
  if (const auto missing = why_no_device(ATTN_DEVICE_CUDA)) {
    why = *missing;
    return nullptr;
  }
  return std::make_unique<CudaBench>();
}

}  // namespace attest
