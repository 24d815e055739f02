#include "reports/tool/hunt.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>

#include "properties/execute.h"
#include "properties/hunt/hunt.h"
#include "reports/tool/gate.h"
#include "reports/tool/plan.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::atomic<bool> interrupt{false};
void on_interrupt(int) { interrupt = true; }

struct Found {
  HuntResult result;
  double before = 0;  // ratio of the kept case, measured again
  std::string file, saved;
};

std::string file_in(const std::string& directory, const std::string& kernel) {
  // File systems hold names of 255 bytes.
  const std::string stem = kernel.size() > 200 ? kernel.substr(0, 180) + "-" + hex(fnv(kernel)) : kernel;
  return (fs::path(directory) / (stem + ".case")).string();
}

// Kept cases by file name: this kernel's own first, then its siblings' of the same operation.
std::vector<Case> starts_for(const Kernel& kernel, const std::string& own, const std::vector<CorpusCase>& kept) {
  std::vector<Case> out;
  for (const bool mine : {true, false})
    for (const CorpusCase& c : kept) {
      const std::int32_t op = c.data.op == Op::forward ? ATTN_OP_FORWARD
                              : c.data.op == Op::step  ? ATTN_OP_STEP
                                                       : ATTN_OP_MERGE;
      if (op == kernel.abi->op && (c.name == fs::path(own).filename()) == mine) out.push_back(c.data);
    }
  for (Case& c : out) c.dtype = DType::any;
  return out;
}

std::string command_for(const HuntCommand& o, const std::string& kernel) {
  return "hunt " + kernel + " --seed " + std::to_string(o.seed) + " --evaluations " + std::to_string(o.evaluations) +
         (o.stored ? " --stored" : "") + plugin_flags(o.selection);
}

// Keeps the case if it is worse than the one kept, a violation among the failures.
void keep(const HuntCommand& o, const Kernel& kernel, Found& found) {
  HuntResult& r = found.result;
  if (r.score.status == Outcome::rejected || r.score.status == Outcome::not_run) return;
  const bool failed = r.score.status == Outcome::fail;
  if (!failed && (o.worst == "none" || r.score.ratio <= found.before)) return;
  r.worst.about =
      text("error/bound %.6f of %s at %s%s; found by attest %s", r.score.ratio, kernel.name.c_str(),
           r.score.where.c_str(), r.stored ? "" : " before output rounding", command_for(o, kernel.name).c_str());
  if (kernel.abi->op == ATTN_OP_FORWARD) r.worst.dtype = formats_for(kernel).storage;
  r.worst.laws = {"encloses"};
  found.saved = failed ? file_in(o.out, kernel.name + "--hunt--" + case_hash(r.worst)) : found.file;
  fs::create_directories(fs::path(found.saved).parent_path());
  save_case(r.worst, found.saved);
}

double kept_ratio(const HuntCommand& o, const Kernel& kernel, const std::string& file,
                  const std::vector<CorpusCase>& kept) {
  for (const CorpusCase& c : kept) {
    if (c.name != fs::path(file).filename()) continue;
    if ((c.data.out == OutDType::storage) != o.stored && c.data.op == Op::forward) continue;
    const HuntScore s = hunt_score(kernel, c.data);
    return s.status == Outcome::pass ? s.ratio : 0;
  }
  return 0;
}

std::string row(const Kernel& kernel, const Found& f, const char* format) {
  const HuntResult& r = f.result;
  const bool forward = kernel.abi->op == ATTN_OP_FORWARD;
  const std::string lse = forward ? text("%.3f", r.lse) : "-";
  const std::string what = r.score.status == Outcome::pass ? r.score.where
                           : r.score.status == Outcome::fail
                               ? "FAIL " + r.score.where + " " + r.score.reason
                               : std::string(name(r.score.status)) + ": " + r.score.reason;
  return text(format, kernel.name.c_str(), r.score.ratio,
              !forward   ? "state"
              : r.stored ? "O as stored"
                         : "O before rounding",
              lse.c_str(), static_cast<long long>(r.evaluations), what.c_str());
}

std::string markdown(const HuntCommand& o, const std::vector<LoadedKernel>& kernels, const std::vector<Found>& found) {
  std::string out =
      "# Largest error/bound found by `attest hunt`\n\nDeterministic tier; a searched maximum is a lower bound. " +
      text("Seed %llu, %lld runs of each kernel.\n\n", static_cast<unsigned long long>(o.seed),
           static_cast<long long>(o.evaluations)) +
      "| kernel | error/bound | of | LSE, largest met | runs | element |\n|---|---|---|---|---|---|\n";
  for (std::size_t n = 0; n < kernels.size(); ++n)
    out += row(kernels[n].kernel, found[n], "| %s | %.4f | %s | %s | %lld | %s |\n");
  return out;
}

}  // namespace

int run_hunt(const HuntCommand& given) {
  HuntCommand o = given;
  std::vector<LoadedKernel> kernels = select_kernels(o.selection);
  std::cout << drop_absent(kernels);
  const std::vector<CorpusCase> kept =
      o.worst != "none" && fs::is_directory(o.worst) ? load_corpus(o.worst) : std::vector<CorpusCase>{};
  interrupt = false;
  const auto before = std::signal(SIGINT, on_interrupt);
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const bool live = isatty(STDERR_FILENO);
  std::vector<Found> found(kernels.size());
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::string fault;
  const auto work = [&] {
    for (std::size_t n = next++; n < kernels.size(); n = next++) {
      const Kernel& kernel = kernels[n].kernel;
      Found& f = found[n];
      try {
        f.file = file_in(o.worst, kernel.name);
        HuntOptions options;
        options.seed = o.seed;
        options.evaluations = o.evaluations;
        options.stored = o.stored;
        options.starts = starts_for(kernel, f.file, kept);
        options.stop = [&](std::int64_t done, double best) {
          if (live && done % 256 == 0) {
            const std::scoped_lock hold(lock);
            std::cerr << text("\r%s: %lld of %lld runs, error/bound %.4f, %.0f s\x1b[K", kernel.name.c_str(),
                              static_cast<long long>(done), static_cast<long long>(o.evaluations), best, seconds());
          }
          return interrupt || (o.seconds > 0 && seconds() >= o.seconds);
        };
        f.before = kept_ratio(o, kernel, f.file, kept);
        f.result = hunt(kernel, options);
        keep(o, kernel, f);
      } catch (const std::exception& e) {
        const std::scoped_lock hold(lock);
        if (fault.empty()) fault = kernel.name + ": " + e.what();
      }
    }
  };
  std::vector<std::thread> threads;
  const int jobs = o.jobs > 0 ? o.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int j = 0; j < jobs; ++j) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  std::signal(SIGINT, before == SIG_ERR ? SIG_DFL : before);
  if (live) std::cerr << "\r\x1b[K";
  if (!fault.empty()) throw UsageError(fault);

  bool failed = false, missing = kernels.empty(), truncated = false;
  for (std::size_t n = 0; n < kernels.size(); ++n) {
    const Found& f = found[n];
    std::cout << row(kernels[n].kernel, f, "%-26s error/bound %.4f of %s, LSE %s, %lld runs: %s\n");
    if (!f.saved.empty())
      std::cout << "  " << tool_command() << " check " << shell_quoted(f.saved) << " --kernels "
                << kernels[n].kernel.name << plugin_flags(o.selection) << "\n";
    failed = failed || f.result.score.status == Outcome::fail;
    missing = missing || f.result.score.status == Outcome::rejected || f.result.score.status == Outcome::not_run;
    truncated = truncated || f.result.truncated;
  }
  if (truncated) std::cout << (interrupt ? "interrupted" : "truncated by --seconds") << "; the worst so far is kept\n";
  if (!o.markdown.empty()) write_whole(o.markdown, markdown(o, kernels, found));
  std::cout << (failed ? "FAIL" : missing ? "INCOMPLETE" : "PASS") << "  seed " << o.seed << "\n";
  return failed ? 1 : interrupt ? 130 : missing ? 3 : 0;
}

}  // namespace attest
