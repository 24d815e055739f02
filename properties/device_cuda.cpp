#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "properties/device.h"
#include "properties/device_view.h"

namespace attest {
namespace {

constexpr std::size_t kAlignment = 256, kGap = 1024, kWorkspaceGuard = 4096;
constexpr int kGapByte = 0x9C, kPoison = 0xFF;

constexpr std::size_t align_up(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// The first error that ended the context, for the whole process: nothing runs on the device after it.
std::mutex lost_mutex;
std::string lost_reason;
std::atomic<bool> lost{false};

std::string text_of(cudaError_t e) { return std::string(cudaGetErrorString(e)) + " (" + cudaGetErrorName(e) + ")"; }

void note_lost(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(lost_mutex);
  if (!lost.exchange(true)) lost_reason = reason;
}

// A stream, memory on the device and its image in pinned memory here, for one thread. They grow and are kept: making
// them takes longer than a small problem.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  // Left to the end of the process: at a thread's end the driver may be gone already.

  cudaError_t reserve(std::size_t bytes) {
    if (!stream_)
      if (const cudaError_t e = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); e != cudaSuccess) return e;
    if (bytes <= size_) return cudaSuccess;
    cudaFree(device_);
    cudaFreeHost(host_);
    device_ = host_ = nullptr;
    size_ = 0;
    const std::size_t wanted = std::max(bytes + bytes / 4, std::size_t{1} << 20);
    void *device = nullptr, *host = nullptr;
    if (const cudaError_t e = cudaMalloc(&device, wanted); e != cudaSuccess) return e;
    device_ = static_cast<std::byte*>(device);
    if (const cudaError_t e = cudaMallocHost(&host, wanted); e != cudaSuccess) return e;
    host_ = static_cast<std::byte*>(host);
    size_ = wanted;
    return cudaSuccess;
  }

  cudaStream_t stream() const { return stream_; }
  std::byte* device() const { return device_; }
  std::byte* host() const { return host_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::byte *device_ = nullptr, *host_ = nullptr;
  std::size_t size_ = 0;
};

Arena& arena() {
  static thread_local Arena* mine = new Arena;
  return *mine;
}

// Where each span stands in the arena: gaps between them, addresses congruent modulo 256.
struct Placed {
  std::span<std::byte> here;
  std::size_t at;
};
struct Plan {
  std::vector<Placed> spans;
  std::size_t workspace = 0, bytes = 0;  // begin of the workspace; of all
};

Plan place(const std::vector<std::span<std::byte>>& memory, std::size_t workspace_bytes) {
  Plan plan;
  std::size_t end = 0;
  for (const std::span<std::byte> s : memory) {
    const std::size_t at = align_up(end + kGap) + reinterpret_cast<std::uintptr_t>(s.data()) % kAlignment;
    plan.spans.push_back({s, at});
    end = at + s.size();
  }
  plan.workspace = align_up(end + kWorkspaceGuard);
  plan.bytes = align_up(plan.workspace + workspace_bytes + kWorkspaceGuard);
  return plan;
}

bool untouched(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == std::byte{kGapByte}; });
}

DeviceRun device_error(cudaError_t e, const char* during) {
  const std::string reason = std::string(during) + ": " + text_of(e);
  // Errors of a launch's arguments leave the context alive; what the device found while it ran does not.
  if (cudaGetLastError(); cudaDeviceSynchronize() != cudaSuccess) note_lost(reason);
  return {ATTN_ERROR, reason, false};
}

}  // namespace

std::optional<std::string> device_lost() {
  if (!lost) return std::nullopt;
  const std::lock_guard<std::mutex> lock(lost_mutex);
  return lost_reason;
}

DeviceRun run_on_device(const attn_kernel& kernel, Problem& problem, std::size_t workspace_bytes) {
  if (lost) return {ATTN_ERROR, "the device was lost by an earlier check: " + lost_reason, false};
  const std::vector<std::span<std::byte>> memory = problem.memory();
  const Plan plan = place(memory, workspace_bytes);
  Arena& a = arena();
  if (const cudaError_t e = a.reserve(plan.bytes); e == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  } else if (e != cudaSuccess) {
    return device_error(e, "reserving device memory");
  }

  std::memset(a.host(), kGapByte, plan.bytes);
  std::vector<MovedSpan> moved;
  for (const Placed& s : plan.spans) {
    std::memcpy(a.host() + s.at, s.here.data(), s.here.size());
    moved.push_back({s.here, a.device() + s.at});
  }
  std::memset(a.host() + plan.workspace, kPoison, workspace_bytes);
  attn_problem there = moved_problem(problem.abi(), moved);
  there.stream = a.stream();
  if (const cudaError_t e = cudaMemcpyAsync(a.device(), a.host(), plan.bytes, cudaMemcpyHostToDevice, a.stream());
      e != cudaSuccess)
    return device_error(e, "copying the problem to the device");

  char why[512] = "";
  DeviceRun run;
  run.status =
      kernel.run(&there, workspace_bytes ? a.device() + plan.workspace : nullptr, workspace_bytes, why, sizeof why);
  why[sizeof why - 1] = 0;
  run.reason = why;
  if (const cudaError_t e = cudaStreamSynchronize(a.stream()); e != cudaSuccess)
    return device_error(e, "running the kernel");
  if (run.status != ATTN_OK) {
    cudaGetLastError();
    return run;
  }
  if (const cudaError_t e = cudaMemcpyAsync(a.host(), a.device(), plan.bytes, cudaMemcpyDeviceToHost, a.stream());
      e != cudaSuccess)
    return device_error(e, "copying the result from the device");
  if (const cudaError_t e = cudaStreamSynchronize(a.stream()); e != cudaSuccess)
    return device_error(e, "copying the result from the device");

  const std::byte* gap = a.host();
  for (const Placed& s : plan.spans) {
    run.wrote_outside |= !untouched(gap, a.host() + s.at);
    std::memcpy(s.here.data(), a.host() + s.at, s.here.size());
    gap = a.host() + s.at + s.here.size();
  }
  run.wrote_outside |= !untouched(gap, a.host() + plan.workspace) ||
                       !untouched(a.host() + plan.workspace + workspace_bytes, a.host() + plan.bytes);
  return run;
}

}  // namespace attest
