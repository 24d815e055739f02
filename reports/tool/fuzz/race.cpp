// How fast the fuzz targets find planted bugs: for each mutant an empty corpus and one worker.
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <mutex>
#include <thread>

#include "properties/device.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "properties/mutants/mutants.h"
#include "reports/tool/fuzz/fuzz.h"
#include "reports/tool/fuzz/lines.h"
#include "reports/tool/fuzz/process.h"
#include "reports/tool/fuzz/targets.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr double early = 60, patience = 600;  // seconds
constexpr double early_share = 0.9;           // of the mutants

std::atomic<bool> interrupt{false};
void on_interrupt(int) { interrupt = true; }

struct Racer {
  std::string kernel, target;
  double seconds = -1;  // -1: not found
  std::int64_t executions = 0;
  std::string law, fault;
};

const char* target_of(const Kernel& kernel) {
  if (kernel.abi->device == ATTN_DEVICE_CUDA) return "cuda";
  return kernel.abi->op == ATTN_OP_FORWARD ? "forward" : kernel.abi->op == ATTN_OP_STEP ? "step" : "merge";
}

// All that search can find: with a device here and a target for it, its mutants too, but for those that a sanitizer
// kills or a case larger than search makes.
std::vector<Kernel> racing_kernels(bool on_device) {
  std::vector<Kernel> all = mutants::mutant_kernels();
  if (!on_device || why_no_device(ATTN_DEVICE_CUDA)) return all;
  const std::vector<mutants::TargetedCase> targeted = mutants::targeted_cases();
  std::vector<Kernel> planted = mutants::device_mutant_kernels();
  for (std::size_t n = 0; n < planted.size(); ++n) {
    const mutants::DeviceMutant& m = mutants::device_table()[n];
    const bool large = std::any_of(targeted.begin(), targeted.end(), [&](const auto& t) { return t.bug == m.bug; });
    if (!large && find_law(m.facts.killer)) all.push_back(std::move(planted[n]));
  }
  return all;
}

void race(Racer& racer, const FuzzTarget& target, const fs::path& folder, double limit, std::uint64_t seed) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder / "inputs", error);
  const double begin = fuzz_clock();
  std::vector<std::string> words = {target.program,
                                    text("-seed=%llu", static_cast<unsigned long long>(seed % 0xffffffffu + 1)),
                                    text("-max_total_time=%d", static_cast<int>(limit)),
                                    "-timeout=60",
                                    "-rss_limit_mb=4096",
                                    "-print_funcs=0"};
  for (const auto& [name, value] : target.options()) words.push_back("-" + name + "=" + value);
  words.push_back((folder / "inputs").string());
  FuzzProcess process(words, folder.string(), {{"ATTEST_FUZZ_KERNELS", racer.kernel}});
  std::string last;
  const auto read = [&](const std::string& line) {
    if (const auto status = fuzz_status(line)) racer.executions = std::max(racer.executions, status->executions);
    if (const auto finding = fuzz_finding(line); finding && racer.seconds < 0) {
      racer.seconds = fuzz_clock() - begin;
      racer.law = finding->law;
    }
    if (line.find("ERROR: ") != std::string::npos || line.starts_with("attest: ")) last = line;
  };
  while (process.read_lines(read)) {
    if (interrupt) process.kill();
    pollfd wait = {process.file(), POLLIN, 0};
    poll(&wait, 1, 500);
  }
  const int status = process.wait();
  const bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (racer.seconds < 0 && !in_order && !interrupt) {
    // A worker that dies of the bug, a crash say, has found it too; one that could not begin has not.
    if (racer.executions > 0 || last.find("ERROR: ") != std::string::npos) {
      racer.seconds = fuzz_clock() - begin;
      racer.law = "crash";
    } else {
      racer.fault = last.empty() ? "the target ended at once" : last;
    }
  }
  fs::remove_all(folder, error);
}

std::string row(const Racer& r, const char* format) {
  const std::string seconds = r.seconds >= 0 ? text("%.1f", r.seconds) : r.fault.empty() ? "not found" : r.fault;
  return text(format, r.kernel.c_str(), ("fuzz_" + r.target).c_str(), seconds.c_str(), r.law.c_str());
}

}  // namespace

int run_fuzz_race(const FuzzOptions& options) {
  // Its clock stops at a finding, where a worker of libFuzzer ends and one of another engine goes on.
  if (options.engine != "libfuzzer") throw UsageError("--mutants races workers of libFuzzer: leave --engine out");
  std::vector<FuzzTarget> targets;
  {
    FuzzOptions all = options;
    all.targets.clear();
    targets = fuzz_targets(all, "fuzz");
  }
  std::vector<Racer> racers;
  std::vector<FuzzTarget> of;
  const bool on_device =
      std::any_of(targets.begin(), targets.end(), [](const FuzzTarget& t) { return t.name == "cuda"; });
  for (const Kernel& kernel : racing_kernels(on_device)) {
    if (!matches_any(options.mutants, kernel.name) && !matches_any(options.mutants, kernel.name.substr(7))) continue;
    const std::string target = target_of(kernel);
    if (!options.targets.empty() && !matches_any(options.targets, target)) continue;
    const auto at = std::find_if(targets.begin(), targets.end(), [&](const FuzzTarget& t) { return t.name == target; });
    if (at == targets.end()) throw UsageError("fuzz_" + target + " is not built in " + options.bin);
    racers.push_back({kernel.name, target, -1, 0, "", ""});
    of.push_back(*at);
  }
  if (racers.empty()) throw UsageError("no mutant matches --mutants; `" + tool_command() + " mutants` lists them");
  const double limit = options.seconds > 0 ? options.seconds : patience;
  const int jobs = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  interrupt = false;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::string fault;
  const auto work = [&] {
    for (std::size_t n = next++; n < racers.size() && !interrupt; n = next++) {
      try {
        race(racers[n], of[n], fs::absolute(options.corpus) / "race" / racers[n].kernel, limit, options.seed + n);
      } catch (const std::exception& e) {
        const std::scoped_lock hold(lock);
        fault = e.what();
        return;
      }
      const std::scoped_lock hold(lock);
      if (!interrupt && !options.quiet) std::cout << row(racers[n], "%-44s %-13s %10s s  %s\n") << std::flush;
    }
  };
  std::vector<std::thread> threads;
  for (int j = 0; j < jobs; ++j) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (!fault.empty()) throw UsageError(fault);

  const auto found_within = [&](double seconds) {
    return std::count_if(racers.begin(), racers.end(),
                         [&](const Racer& r) { return r.seconds >= 0 && r.seconds <= seconds; });
  };
  const auto all = static_cast<double>(racers.size());
  const bool good =
      static_cast<double>(found_within(early)) >= early_share * all && found_within(limit) == std::ssize(racers);
  std::vector<double> seconds;
  for (const Racer& r : racers)
    if (r.seconds >= 0) seconds.push_back(r.seconds);
  std::sort(seconds.begin(), seconds.end());
  const std::string verdict =
      text("%s  seed %llu: %td of %zu mutants found within %.0f s, %td within %.0f s; median %.1f s%s",
           interrupt ? "INTERRUPTED"
           : good    ? "PASS"
                     : "FAIL",
           static_cast<unsigned long long>(options.seed), found_within(early), racers.size(), early,
           found_within(limit), limit, seconds.empty() ? 0.0 : seconds[seconds.size() / 2], "");
  if (!options.markdown.empty()) {
    std::string out = "# Planted bugs found by the fuzz targets\n\nFor each mutant an empty corpus and one worker. " +
                      verdict + "\n\n| mutant | target | seconds | by |\n|---|---|---|---|\n";
    for (const Racer& r : racers) out += row(r, "| %s | %s | %s | %s |\n");
    write_whole(options.markdown, out);
  }
  std::cout << verdict << "\n";
  return interrupt ? 130 : good ? 0 : 1;
}

}  // namespace attest
