#include "reports/tool/bench.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "impl/registry.h"
#include "reports/tool/bench_report.h"
#include "reports/tool/bench_run.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::atomic<int> bench_interrupts{0};

void interrupt_bench(int signal) {
  // The second time as if nothing held it.
  if (++bench_interrupts > 1) std::signal(signal, SIG_DFL), std::raise(signal);
}

// While it lives, SIGINT and SIGTERM are counted.
class Interruptible {
 public:
  Interruptible() : before_{std::signal(SIGINT, interrupt_bench), std::signal(SIGTERM, interrupt_bench)} {
    bench_interrupts = 0;
  }
  ~Interruptible() {
    std::signal(SIGINT, before_[0] == SIG_ERR ? SIG_DFL : before_[0]);
    std::signal(SIGTERM, before_[1] == SIG_ERR ? SIG_DFL : before_[1]);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  static bool asked() { return bench_interrupts > 0; }

 private:
  void (*before_[2])(int);
};

// A file that cannot be written is better known before the run than after it.
void probe(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && !std::filesystem::is_directory(parent))
    throw UsageError(path + ": cannot be written: " + parent.string() + " is not a directory");
}

void list_cells(const std::vector<BenchCell>& cells) {
  for (const BenchCell& c : cells)
    std::cout << (c.counts_flops() ? text("%-30s %8.1f GFLOP\n", c.name().c_str(), c.flops() / 1e9)
                                   : text("%-30s %8.1f MB\n", c.name().c_str(), c.bytes() / 1e6));
}

std::unique_ptr<BenchPeer> start_peer(const BenchOptions& o, BenchResult& result) {
  if (o.peers == "none") {
    result.no_peer = "not asked for";
    return nullptr;
  }
  std::unique_ptr<BenchPeer> peer = BenchPeer::start(o.python, Interruptible::asked, result.no_peer);
  if (peer)
    for (const auto& [label, value] : peer->hello().items())
      result.peer[label] = value.is_string() ? value.get<std::string>() : value.dump();
  return peer;
}

}  // namespace

int run_bench(const BenchOptions& o) {
  const std::vector<BenchCell> cells = bench_cells(o.choice);
  if (o.list) {
    list_cells(cells);
    return 0;
  }
  for (const std::string& path : {o.json, o.markdown}) probe(path);
  const BenchRequirement required = {o.require == "cuda", o.ratio,
                                     o.timing == "call" ? BenchTiming::call : BenchTiming::device};
  const BenchAbout about = {o.command, file_hash("/proc/self/exe"), o.rounds, o.seed};
  // With the JSON on standard output, people read on standard error.
  std::ostream& out = o.json == "-" ? std::cerr : std::cout;
  BenchResult result;
  const auto finish = [&] {
    out << bench_summary(result, required) << std::flush;
    if (!o.json.empty()) write_whole(o.json, bench_json(result, required, about, false));
    if (!o.markdown.empty()) write_whole(o.markdown, bench_markdown(result, required, about));
    return bench_exit_code(result, required);
  };

  BenchPlan plan = bench_plan(attn::cuda_kernels(), o.kernels, cells, o.peers != "none");
  if (!o.kernels.empty() && plan.kernels.empty())
    throw UsageError("no CUDA kernel matches '" + o.kernels.front() + "'; `" + tool_command() +
                     " kernels --device cuda` lists them");
  plan.rounds = o.rounds;
  plan.effort.seconds = o.effort * 1e-3;
  plan.seconds = o.seconds;
  plan.seed = o.seed;
  const std::unique_ptr<BenchDevice> device = cuda_bench_device(result.not_run);
  if (!device) return finish();

  const Interruptible guard;
  const bool live = isatty(STDERR_FILENO);
  const auto clear = [&] { live ? void(std::cerr << "\r\x1b[K" << std::flush) : void(); };
  BenchWatch watch;
  watch.stop = Interruptible::asked;
  watch.progress = [&](const std::string& what) {
    if (live) std::cerr << text("\r%s\x1b[K", what.c_str()) << std::flush;
  };
  watch.measured = [&](const BenchResult& so_far, const BenchCellResult& cell) {
    clear();
    if (!o.quiet) out << bench_line(cell, required.timing) << "\n" << std::flush;
    if (!o.json.empty() && is_replaceable(o.json)) write_whole(o.json, bench_json(so_far, required, about, true));
  };
  watch.progress("starting the peer");
  const std::unique_ptr<BenchPeer> peer = start_peer(o, result);
  clear();
  if (!peer && o.peers != "none") {
    std::erase_if(plan.cells, [](const BenchCell& c) { return c.kind == BenchKind::matmul; });
    out << "no peer: " << result.no_peer << "\n" << std::flush;
  }
  bench_measure(*device, peer.get(), plan, watch, result);
  clear();
  return finish();
}

}  // namespace attest
