#include "properties/execute.h"

#include <algorithm>
#include <exception>

#include "oracle/bound.h"
#include "oracle/buffer.h"
#include "oracle/float_environment.h"
#include "properties/device.h"

#if defined(__SANITIZE_ADDRESS__)
#define ATTEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTEST_ASAN 1
#endif
#endif
#ifdef ATTEST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace attest {
namespace {

constexpr std::uint8_t kPoison = 0xFF;  // NaN in every format: reading scratch before writing it shows

// Scratch of exactly the size that was asked for, between canaries: a stray row of fp32 lands in them.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes)
      : buffer_(static_cast<std::int64_t>(bytes), kPoison, {.name = "the workspace", .alignment = 64, .guard = 4096}) {
#ifdef ATTEST_ASAN
    // A sanitizer then sees stray reads as well, which canaries cannot.
    ASAN_POISON_MEMORY_REGION(buffer_.guard_before().data(), buffer_.guard_before().size());
    ASAN_POISON_MEMORY_REGION(buffer_.guard_after().data(), buffer_.guard_after().size());
#endif
  }
  ~Workspace() { unpoison(); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::byte* data() { return buffer_.data(); }

  bool damaged() {
    unpoison();
    return buffer_.broken_guard().has_value();
  }

 private:
  void unpoison() {
#ifdef ATTEST_ASAN
    ASAN_UNPOISON_MEMORY_REGION(buffer_.guard_before().data(), buffer_.guard_before().size());
    ASAN_UNPOISON_MEMORY_REGION(buffer_.guard_after().data(), buffer_.guard_after().size());
#endif
  }
  Buffer buffer_;
};

// Inputs as a kernel may use them: to be read. The laws write to them between two runs.
class ReadOnlyInputs {
 public:
  explicit ReadOnlyInputs(Problem& problem) : problem_(problem) { problem_.protect_inputs(true); }
  ~ReadOnlyInputs() { problem_.protect_inputs(false); }
  ReadOnlyInputs(const ReadOnlyInputs&) = delete;
  ReadOnlyInputs& operator=(const ReadOnlyInputs&) = delete;

 private:
  Problem& problem_;
};

Execution failed(std::string reason, std::size_t bytes = 0) { return {Outcome::fail, std::move(reason), bytes}; }

// Options whose place is reserved must be refused: a kernel that ignores one computes something else than was asked.
bool asks_for_reserved(const attn_problem& p) {
  return p.softcap != 0 || p.mask.window_left >= 0 || p.mask.window_right >= 0 || p.bias.data || p.sinks.data;
}

DeviceRun run_here(const attn_kernel& k, Problem& problem, std::size_t bytes) {
  std::optional<Workspace> workspace;
  if (bytes) workspace.emplace(bytes);
  char why[512] = "";
  DeviceRun run;
  run.status = k.run(&problem.abi(), workspace ? workspace->data() : nullptr, bytes, why, sizeof why);
  why[sizeof why - 1] = 0;
  run.reason = why;
  run.wrote_outside = workspace && workspace->damaged();
  return run;
}

Execution run_guarded(const Kernel& kernel, Problem& problem) {
  const attn_kernel& k = *kernel.abi;
  if (const auto missing = why_no_device(k.device)) return {Outcome::not_run, *missing, 0};
  std::optional<ReadOnlyInputs> inputs;
  if (k.device == ATTN_DEVICE_CPU) inputs.emplace(problem);
  const attn_problem& p = problem.abi();
  char why[512] = "";
  const std::int32_t supported = k.supports(&p, why, sizeof why);
  why[sizeof why - 1] = 0;
  if (supported == ATTN_REJECTED) return {Outcome::rejected, why[0] ? why : "the kernel gave no reason", 0};
  if (supported == ATTN_NO_DEVICE) return {Outcome::not_run, why[0] ? why : "no device", 0};
  if (supported != ATTN_OK) return failed("supports() returned status " + std::to_string(supported) + ": " + why);
  if (asks_for_reserved(p)) return failed("supports() accepts a reserved option that no kernel may implement yet");

  const std::size_t bytes = k.workspace_size ? k.workspace_size(&p) : 0;
  const double allowed = workspace_allowance(k.contract, p);
  if (static_cast<double>(bytes) > allowed)
    return failed("workspace of " + std::to_string(bytes) + " bytes; the Contract allows " + std::to_string(allowed),
                  bytes);

  const DeviceRun run = k.device == ATTN_DEVICE_CPU ? run_here(k, problem, bytes) : run_on_device(k, problem, bytes);
  const std::string& reason = run.reason;
  if (run.status == ATTN_NO_DEVICE) return {Outcome::not_run, reason.empty() ? "no device" : reason, bytes};
  if (run.status == ATTN_REJECTED) return failed("run() rejects what supports() accepted: " + reason, bytes);
  if (run.status != ATTN_OK)
    return failed("run() returned status " + std::to_string(run.status) + ": " + reason, bytes);
  if (run.wrote_outside)
    return failed(k.device == ATTN_DEVICE_CPU ? "run() wrote outside of its workspace"
                                              : "run() wrote outside of its tensors and workspace",
                  bytes);
  return {Outcome::pass, "", bytes};
}

}  // namespace

Execution execute(const Kernel& kernel, Problem& problem) {
  const FloatEnvironmentGuard environment;
  // The interface is C and must not throw, but a library that does is a finding, not the end of the run.
  try {
    return run_guarded(kernel, problem);
  } catch (const std::exception& e) {
    return failed(std::string("the kernel threw: ") + e.what());
  } catch (...) {
    return failed("the kernel threw something that is not a std::exception");
  }
}

Formats formats_for(const Kernel& kernel) {
  const attn_contract& contract = kernel.abi->contract;
  Formats f;
  f.accumulator = dtype_of(contract.acc_dtype);
  // A merge has no q, k, v: its states are in the accumulator format.
  f.storage = contract.in_dtype == ATTN_DTYPE_NONE ? f.accumulator : dtype_of(contract.in_dtype);
  return f;
}

double workspace_allowance(const attn_contract& c, const attn_problem& p) {
  double rows = 0, d_qk = 0, d_v = 0, tq = 0, tk = 0;
  if (p.op == ATTN_OP_FORWARD) {
    tq = static_cast<double>(p.q.shape[2]);
    tk = static_cast<double>(p.k.shape[2]);
    rows = static_cast<double>(p.q.shape[0] * p.q.shape[1]) * tq;
    d_qk = static_cast<double>(p.q.shape[3]);
    d_v = static_cast<double>(p.v.shape[3]);
  } else {
    rows = tq = static_cast<double>(p.a.m.shape[0]);
    tk = p.op == ATTN_OP_STEP ? static_cast<double>(p.scores.shape[1]) : 0;
    d_v = p.a.acc.data ? static_cast<double>(p.a.acc.shape[1]) : 0;
  }
  // What the problem asks, else the kernel's own choice, else (unknown) the whole sequence.
  const auto chosen = [](std::int64_t asked, std::int64_t own, double whole) {
    const std::int64_t n = asked > 0 ? asked : own;
    return n > 0 ? static_cast<double>(n) : whole;
  };
  const double br = std::min(chosen(p.tiling.block_q, c.default_block_q, tq), tq);
  const double bc = std::min(chosen(p.tiling.block_k, c.default_block_k, tk), tk);
  const double splits = chosen(p.tiling.splits, c.max_splits, std::max(tk, 1.0));
  const double threads = std::max(p.tiling.threads, 1);
  return c.workspace_fixed + c.workspace_per_row * rows + c.workspace_per_value * rows * d_v +
         c.workspace_per_split * splits * rows * (d_v + 2) +
         c.workspace_per_thread * threads * (br + bc + 1) * (d_qk + d_v + 16);
}

}  // namespace attest
