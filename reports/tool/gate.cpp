#include "reports/tool/gate.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>

#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/output.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// Set by Ctrl-C: checks that run are finished, none is begun.
std::atomic<bool> interrupted{false};
std::atomic<std::int64_t> interrupted_at{0};  // ms
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
void on_interrupt(int) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  // A second Ctrl-C ends a kernel that does not return. The same one may arrive twice: sent to the process group, and
  // passed on by the parent process.
  if (interrupted && ms - interrupted_at > 300) std::signal(SIGINT, SIG_DFL), std::raise(SIGINT);
  if (!interrupted) interrupted_at = ms;
  interrupted = true;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Calls work(i) for i in [0, n) from several threads, in order of start, until it is done or `stop` says so.
// An exception of any of them is raised here.
template <class Work, class Stop, class Idle>
void in_parallel(std::size_t n, int jobs, const Work& work, const Stop& stop, const Idle& idle) {
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::condition_variable ended;
  std::exception_ptr error;
  int running = jobs;
  const auto worker = [&] {
    try {
      while (!stop()) {
        const std::size_t i = next++;
        if (i >= n) break;
        work(i);
      }
    } catch (...) {
      const std::scoped_lock hold(lock);
      if (!error) error = std::current_exception();
      next = n;
    }
    const std::scoped_lock hold(lock);
    --running;
    ended.notify_all();
  };
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(jobs));
  for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
  std::unique_lock hold(lock);
  while (!ended.wait_for(hold, std::chrono::milliseconds(200), [&] { return running == 0; })) {
    hold.unlock();
    idle();
    hold.lock();
  }
  hold.unlock();
  threads.clear();
  if (error) std::rethrow_exception(error);
}

class Gate {
 public:
  Gate(const GateOptions& options, Plan plan, std::vector<Waiver> ledger)
      : options_(options), plan_(std::move(plan)), ledger_(std::move(ledger)) {
    result_.tallies.resize(plan_.pairs.size());
    result_.planned = static_cast<std::int64_t>(plan_.size());
    jobs_ = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    live_ = !options.quiet && isatty(STDERR_FILENO);
  }

  const GateResult& run() {
    in_parallel(
        plan_.size(), jobs_, [&](std::size_t i) { run_unit(i); }, [&] { return out_of_time(); },
        [&] { show_progress(); });
    result_.interrupted = interrupted;
    result_.truncated = result_.done < result_.planned;
    if (live_) std::fputs("\r\x1b[K", stderr);
    keep_failures();
    result_.seconds = seconds_since(start_);
    result_.conclude(plan_, options_, ledger_);
    return result_;
  }

  const Plan& plan() const { return plan_; }

 private:
  bool out_of_time() const {
    return interrupted || (options_.seconds > 0 && seconds_since(start_) >= options_.seconds);
  }

  std::string file_name(const Pair& pair, const Case& c) const {
    // File systems hold names of 255 bytes.
    const std::string& name = pair.kernel->kernel.name;
    return (name.size() > 80 ? name.substr(0, 80) + "-" + hex(fnv(name)) : name) + "--" + std::string(pair.law->name) +
           "--" + case_hash(c) + ".case";
  }

  void run_unit(std::size_t order) {
    const Unit unit = plan_.unit(order);
    const Pair& pair = plan_.pairs[unit.pair];
    const Kernel& kernel = pair.kernel->kernel;
    const bool generated = unit.index >= 0;
    const CorpusCase* from = generated ? nullptr : &plan_.corpus[static_cast<std::size_t>(-1 - unit.index)];
    const Case c = generated ? generated_case(kernel, *pair.law, options_.seed, unit.index) : from->data;
    if (const std::string why = pair.law->why_not(c, kernel); !why.empty()) {
      const std::scoped_lock hold(lock_);
      result_.tallies[unit.pair].add_inapplicable(order, why);
      ++result_.done;
      return;
    }
    CheckResult r;
    {
      const CrashNote note(generated ? file_name(pair, c) : from->path, generated ? to_text(c) : "", kernel.name,
                           std::string(pair.law->name), plugin_flags(options_.selection));
      r = check_case(c, kernel, *pair.law, context_for(c, plan_.lambda));
    }
    const std::string name =
        generated ? "generated " + std::to_string(unit.index) + " (" + case_hash(c) + ")" : from->name;
    const std::scoped_lock hold(lock_);
    result_.tallies[unit.pair].add(order, !generated, name, c, r);
    if (r.outcome == Outcome::fail) ++failures_;
    ++result_.done;
  }

  // Shrinks and saves the first failure of each pair. The number of checks that this takes is bounded over all pairs,
  // and is a count: a gate on which everything fails still ends soon, and always in the same way.
  void keep_failures() {
    std::vector<std::size_t> failed;
    for (std::size_t i = 0; i < result_.tallies.size(); ++i)
      if (result_.tallies[i].failure) failed.push_back(i);
    if (failed.empty()) return;
    const int each = std::clamp(3000 / static_cast<int>(failed.size()), 20, 200);
    in_parallel(
        failed.size(), jobs_, [&](std::size_t i) { keep_failure(failed[i], each); }, [] { return false; },
        [&] {
          if (live_) std::fprintf(stderr, "\rshrinking %zu failures ...\x1b[K", failed.size());
        });
    if (live_) std::fputs("\r\x1b[K", stderr);
  }

  void keep_failure(std::size_t index, int max_checks) {
    const Pair& pair = plan_.pairs[index];
    const Kernel& kernel = pair.kernel->kernel;
    Failure& failure = *result_.tallies[index].failure;
    if (failure.replayed) {  // the corpus has the file, small as it is
      const Unit unit = plan_.unit(failure.order);
      failure.file = plan_.corpus[static_cast<std::size_t>(-1 - unit.index)].path;
    } else {
      if (!interrupted) shrink(pair, failure, max_checks);
      failure.file = (fs::path(options_.out) / file_name(pair, failure.data)).string();
      try {
        save_case(failure.data, failure.file);
      } catch (const std::exception& e) {  // the disk may have filled up since the start; the verdict stands
        failure.unsaved = e.what();
        failure.file.clear();
        return;
      }
    }
    failure.command = tool_command() + " check " + shell_quoted(failure.file) + " --kernels " + kernel.name +
                      " --laws " + std::string(pair.law->name) + plugin_flags(options_.selection);
  }

  // A law that draws its own choices draws others for another case, so the shrunk case counts only if `check`, which
  // asks afresh, fails on it too.
  void shrink(const Pair& pair, Failure& failure, int max_checks) const {
    const Kernel& kernel = pair.kernel->kernel;
    const CrashNote note(file_name(pair, failure.data), to_text(failure.data), kernel.name, std::string(pair.law->name),
                         plugin_flags(options_.selection));
    const Case small =
        shrink_failure(failure.data, kernel, *pair.law, context_for(failure.data, plan_.lambda), max_checks);
    const CheckResult again = check_case(small, kernel, *pair.law, context_for(small, plan_.lambda));
    if (again.outcome != Outcome::fail) return;
    failure.data = small;
    failure.result = again;
  }

  void show_progress() {
    const std::scoped_lock hold(lock_);
    const double now = seconds_since(start_);
    if (live_)
      std::fprintf(
          stderr, "\r[%3.0f%%] %lld of %lld checks, %lld failures, %.0f s\x1b[K",
          100.0 * static_cast<double>(result_.done) / std::max<double>(1, static_cast<double>(result_.planned)),
          static_cast<long long>(result_.done), static_cast<long long>(result_.planned),
          static_cast<long long>(failures_), now);
    if (now - written_ < 2) return;
    written_ = now;
    GateResult so_far = result_;
    so_far.seconds = now;
    so_far.truncated = true;
    so_far.conclude(plan_, options_, {});
    write_partial(options_, gate_json(plan_, options_, so_far, true));
  }

  const GateOptions& options_;
  Plan plan_;
  std::vector<Waiver> ledger_;
  GateResult result_;
  std::mutex lock_;
  std::int64_t failures_ = 0;
  int jobs_ = 1;
  bool live_ = false;
  double written_ = 0;
  const Clock::time_point start_ = Clock::now();
};

// `--require-contract`: no kernel may be judged by a laxer promise than the one the caller knows.
void require_presets(const Plan& plan, const GateOptions& options) {
  if (options.require_preset.empty()) return;
  for (const LoadedKernel& k : plan.kernels) {
    if (!options.selection.plugins.empty() && !k.from_plugin) continue;
    if (!matches_any(options.require_preset, k.kernel.contract_name))
      throw UsageError("kernel " + k.kernel.name + " (" + k.kernel.origin + "): Contract is \"" +
                       k.kernel.contract_name + "\", but --require-contract asks for " +
                       options.require_preset.front());
  }
}

// The gate between its first and its last word; `judged` once there is a verdict. Raises UsageError, PluginError or
// CaseError.
int judge_all(const GateOptions& options, bool& judged) {
  std::vector<Waiver> ledger;
  if (!options.waivers.empty()) ledger = load_waivers(options.waivers);
  Plan plan = make_plan(options);
  require_presets(plan, options);
  const OutDirectory out(options.out);
  install_crash_notes(options.out);
  interrupted = false;
  std::signal(SIGINT, on_interrupt);

  Gate gate(options, std::move(plan), std::move(ledger));
  const GateResult& result = gate.run();
  std::signal(SIGINT, SIG_DFL);
  judged = true;
  // With the JSON on standard output, people read on standard error. Text first: a report that cannot be written does
  // not take the verdict along.
  (options.json == "-" ? std::cerr : std::cout) << gate_text(gate.plan(), options, result) << std::flush;
  if (!options.json.empty()) write_whole(options.json, gate_json(gate.plan(), options, result, false));
  if (!options.junit.empty()) write_whole(options.junit, gate_junit(gate.plan(), result));
  return result.exit_code();
}

}  // namespace

std::string plugin_flags(const Selection& selection) {
  std::string flags;
  for (const std::string& p : selection.plugins) flags += " --plugin " + shell_quoted(p);
  return flags;
}

int run_gate(const GateOptions& options) {
  begin_reports(options);
  bool judged = false;
  try {
    return judge_all(options, judged);
  } catch (const std::exception& e) {
    if (!judged) write_partial(options, error_json(e.what()));
    throw;
  }
}

}  // namespace attest
