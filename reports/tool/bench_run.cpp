#include "reports/tool/bench_run.h"

#include <algorithm>
#include <chrono>

#include "reports/tool/bench_problem.h"
#include "reports/tool/bench_turns.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

// Memory for all cells, at most a share of what is free: the peer needs some too, up to four times K and V for
// repeated heads.
std::size_t block_bytes(BenchDevice& device, const BenchPlan& plan, bool with_peer) {
  const auto most = static_cast<std::size_t>(static_cast<double>(device.free_bytes()) * (with_peer ? 0.4 : 0.9));
  std::size_t bytes = 1 << 21;
  for (const BenchCell& c : plan.cells)
    if (const std::size_t needed = bench_block_bytes(c, device.l2_bytes()); needed <= most)
      bytes = std::max(bytes, needed);
  return bytes;
}

// The peer opens the block and finds a number there that only this process can have put.
void share_block(BenchDevice& device, BenchPeer& peer, std::byte* block, std::size_t bytes, BenchResult& result) {
  const auto stamp = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) & 0x7fffffffffffffffu;
  device.store(block, stamp);
  const std::string handle = device.share(result.not_shared);
  if (handle.empty()) return;
  const nlohmann::json answer = peer.ask({{"cmd", "share"}, {"handle", handle}, {"bytes", bytes}, {"stamp", stamp}});
  result.shared = answer.value("shared", false);
  if (!result.shared) result.not_shared = answer.value("error", "no reason given");
}

}  // namespace

BenchPlan bench_plan(std::span<const attn_kernel> kernels, const std::vector<std::string>& globs,
                     const std::vector<BenchCell>& cells, bool with_peer) {
  BenchPlan plan;
  for (const attn_kernel& k : kernels) {
    if (matches_any(globs, k.name)) plan.kernels.push_back(&k);
    plan.references.push_back(&k);
  }
  for (const BenchCell& c : cells) {
    const bool suits =
        std::any_of(plan.kernels.begin(), plan.kernels.end(), [&](const attn_kernel* k) { return suits_cell(*k, c); });
    if (suits || c.kind == BenchKind::copy || (c.kind == BenchKind::matmul && with_peer)) plan.cells.push_back(c);
  }
  return plan;
}

void bench_measure(BenchDevice& device, BenchPeer* peer, const BenchPlan& plan, const BenchWatch& watch,
                   BenchResult& result) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  result.facts = device.facts();
  result.planned = plan.cells.size();
  try {
    const std::size_t bytes = block_bytes(device, plan, peer != nullptr);
    std::byte* const block = device.reserve(bytes);
    if (!block) throw BenchDeviceError(text("no %.1f GiB of device memory for the tensors", std::ldexp(bytes, -30)));
    try {
      if (peer) share_block(device, *peer, block, bytes, result);
    } catch (const BenchPeerLost& e) {
      peer = nullptr;
      result.no_peer = e.what();
    }
    for (const BenchCell& c : plan.cells) {
      result.seconds = seconds();
      if (plan.seconds > 0 && result.seconds >= plan.seconds) {
        result.truncated = true;
        break;
      }
      BenchTurns turns(device, peer, plan, watch, c, block, bytes, result.shared);
      try {
        turns.run();
      } catch (const BenchPeerLost& e) {
        peer = nullptr;
        result.no_peer = e.what();
      } catch (const BenchDeviceError& e) {
        result.fault = c.name() + ": " + e.what();
      }
      result.cells.push_back(turns.result());
      result.seconds = seconds();
      if (watch.measured) watch.measured(result, result.cells.back());
      if (!result.fault.empty()) break;
      if (watch.stop && watch.stop()) {
        result.interrupted = true;
        break;
      }
    }
  } catch (const BenchDeviceError& e) {
    result.fault = e.what();
  }
  result.seconds = seconds();
}

}  // namespace attest
