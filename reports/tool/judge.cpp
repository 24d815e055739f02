#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <thread>

#include "properties/device.h"
#include "reports/tool/judging.h"
#include "reports/tool/output.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// Set by Ctrl-C: checks that run are finished, none is begun.
std::atomic<bool> interrupt{false};
std::atomic<std::int64_t> interrupted_at{0};  // ms
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
void on_interrupt(int) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  // A second Ctrl-C ends a kernel that does not return. The same one may arrive twice: sent to the process group, and
  // passed on by the parent process.
  if (interrupt && ms - interrupted_at > 300) std::signal(SIGINT, SIG_DFL), std::raise(SIGINT);
  if (!interrupt) interrupted_at = ms;
  interrupt = true;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Judging::Judging(const GateOptions& o, const Plan& p, const std::vector<Waiver>& l) : options(o), plan(p), ledger(l) {
  result.tallies.resize(plan.pairs.size());
  for (std::size_t i = plan.active; i < plan.pairs.size(); ++i)
    result.tallies[i].add_absent(why_no_device(plan.pairs[i].kernel->kernel.abi->device).value_or(""));
  result.planned = static_cast<std::int64_t>(plan.size());
  jobs = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  live_ = !options.quiet && isatty(STDERR_FILENO);
}

double Judging::seconds() const { return seconds_since(start_); }

bool Judging::interrupted() const { return interrupt; }

bool Judging::out_of_time() const {
  return interrupt || (options.seconds > 0 && seconds_since(start_) >= options.seconds);
}

const CorpusCase* Judging::replayed(const Unit& unit) const {
  return unit.index >= 0 ? nullptr : &plan.corpus[static_cast<std::size_t>(-1 - unit.index)];
}

std::string Judging::case_name(const Unit& unit, const std::string& hash) const {
  if (const CorpusCase* from = replayed(unit)) return from->name;
  return "generated " + std::to_string(unit.index) + " (" + hash + ")";
}

std::string Judging::file_name(const Pair& pair, const std::string& hash) const {
  // File systems hold names of 255 bytes.
  const std::string& name = pair.kernel->kernel.name;
  return (name.size() > 80 ? name.substr(0, 80) + "-" + hex(fnv(name)) : name) + "--" + std::string(pair.law->name) +
         "--" + hash + ".case";
}

void Judging::show_progress() {
  const std::scoped_lock hold(lock);
  const double now = seconds_since(start_);
  if (live_)
    std::fprintf(stderr, "\r[%3.0f%%] %lld of %lld checks, %lld failures, %.0f s\x1b[K",
                 100.0 * static_cast<double>(result.done) / std::max<double>(1, static_cast<double>(result.planned)),
                 static_cast<long long>(result.done), static_cast<long long>(result.planned),
                 static_cast<long long>(result.counts()[static_cast<std::size_t>(Outcome::fail)]), now);
  if (now - written_ < 2) return;
  written_ = now;
  GateResult so_far = result;
  so_far.seconds = now;
  so_far.truncated = true;
  so_far.conclude(plan, options, {});
  write_partial(options, gate_json(plan, options, so_far, true));
}

void Judging::note_end() {
  result.interrupted = interrupt;
  result.truncated = result.done < result.planned;
  clear_progress();
}

void Judging::show_shrinking(std::size_t failures) const {
  if (live_) std::fprintf(stderr, "\rshrinking %zu failures ...\x1b[K", failures);
}

void Judging::clear_progress() const {
  if (live_) std::fputs("\r\x1b[K", stderr);
}

std::vector<std::size_t> Judging::failed_pairs() const {
  std::vector<std::size_t> failed;
  for (std::size_t i = 0; i < result.tallies.size(); ++i)
    if (result.tallies[i].failure) failed.push_back(i);
  return failed;
}

int Judging::shrinking_checks(std::size_t failed) { return std::clamp(3000 / static_cast<int>(failed), 20, 200); }

void Judging::save(std::size_t index, const std::string& more_flags) {
  const Pair& pair = plan.pairs[index];
  Failure& failure = *result.tallies[index].failure;
  if (!failure.unsaved.empty()) return;
  if (failure.replayed) {  // the corpus has the file, small as it is
    failure.file = replayed(plan.unit(failure.order))->path;
  } else {
    failure.file = (fs::path(options.out) / file_name(pair, case_hash(failure.data))).string();
    try {
      save_case(failure.data, failure.file);
    } catch (const std::exception& e) {  // the disk may have filled up since the start; the verdict stands
      failure.unsaved = e.what();
      failure.file.clear();
      return;
    }
  }
  failure.command = tool_command() + " check " + shell_quoted(failure.file) + " --kernels " + pair.kernel->kernel.name +
                    " --laws " + std::string(pair.law->name) + plugin_flags(options.selection) + more_flags;
}

GateResult judge(const GateOptions& options, const Plan& plan, const std::vector<Waiver>& ledger) {
  interrupt = false;
  const auto before = std::signal(SIGINT, on_interrupt);
  Judging judging(options, plan, ledger);
  if (isolates(options.isolation, plan.kernels))
    check_in_workers(judging);
  else
    check_on_threads(judging);
  std::signal(SIGINT, before == SIG_ERR ? SIG_DFL : before);
  GateResult& result = judging.result;
  result.seconds = judging.seconds();
  result.conclude(plan, options, ledger);
  return std::move(result);
}

}  // namespace attest
