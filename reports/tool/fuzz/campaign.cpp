#include "reports/tool/fuzz/campaign.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>

#include "reports/tool/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

// A target whose workers die as soon as they begin says nothing more by dying again.
constexpr int most_deaths = 50, deaths_without_work = 3;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return text("signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return text("exit code %d", WEXITSTATUS(status));
}

// The case that a worker was at when it ended, which is of no use afterwards.
struct RunningCase {
  fs::path file;
  explicit RunningCase(fs::path f) : file(std::move(f)) {}
  ~RunningCase() {
    std::error_code none;
    fs::remove(file, none);
  }
  RunningCase(const RunningCase&) = delete;
  RunningCase& operator=(const RunningCase&) = delete;

  // What does not begin as a case stands for none.
  bool left() const { return std::ifstream(file).peek() == '{'; }
};

}  // namespace

std::pair<std::string, double> FuzzProgress::worst_of_all() const {
  std::pair<std::string, double> out{"", 0};
  for (const auto& [kernel, ratio] : worst)
    if (ratio > out.second) out = {kernel, ratio};
  return out;
}

FuzzTurn::FuzzTurn(const FuzzTarget& target, const FuzzOptions& options, const FuzzFolder& folder,
                   FuzzFindings& findings, FuzzProgress& progress, std::uint64_t seed)
    : target_(target),
      options_(options),
      folder_(folder),
      findings_(findings),
      progress_(progress),
      seed_(seed),
      workers_(static_cast<std::size_t>(options.jobs)) {}

std::vector<std::string> FuzzTurn::command(double seconds, std::uint64_t seed) const {
  std::vector<std::string> out = {
      target_.program,
      // libFuzzer takes 0 for "any".
      text("-seed=%llu", static_cast<unsigned long long>(seed % 0xffffffffu + 1)),
      text("-max_total_time=%lld", static_cast<long long>(std::max(1.0, std::ceil(seconds)))),
      "-reload=1",
      "-len_control=0",
      "-print_final_stats=1",
      "-timeout=60",
      "-rss_limit_mb=4096",
      "-artifact_prefix=" + (folder_.findings() / (target_.name + "-")).string(),
  };
  if (const std::string words = target_.program + ".dict"; fs::exists(words)) out.push_back("-dict=" + words);
  out.push_back(folder_.inputs(target_).string());
  if (const std::string more = folder_.stored(target_); !more.empty()) out.push_back(more);
  return out;
}

void FuzzTurn::start(Worker& worker, double seconds) {
  std::vector<std::pair<std::string, std::string>> environment;
  if (!options_.kernels.empty()) {
    std::string globs;
    for (const std::string& k : options_.kernels) globs += (globs.empty() ? "" : ",") + k;
    environment.push_back({"ATTEST_FUZZ_KERNELS", globs});
  }
  worker = Worker();
  worker.counted = fuzz_clock();
  worker.process = std::make_unique<FuzzProcess>(command(seconds, seed_++), folder_.findings().string(), environment);
}

void FuzzTurn::read(Worker& worker, const std::string& line, const std::function<void(const std::string&)>& say) {
  if (const auto status = fuzz_status(line)) {
    progress_.executions += std::max<std::int64_t>(0, status->executions - worker.executed);
    worker.executed = std::max(worker.executed, status->executions);
    progress_.edges = std::max(progress_.edges, status->edges);
    progress_.features = std::max(progress_.features, status->features);
  } else if (const auto worst = fuzz_worst(line)) {
    double& known = progress_.worst[worst->kernel];
    known = std::max(known, worst->ratio);
  } else if (const auto finding = fuzz_finding(line)) {
    worker.reported = true;
    if (const std::string said = findings_.add(target_, *finding); !said.empty()) say(said);
  } else if (const auto checks = fuzz_checks(line)) {
    progress_.checks.made += checks->made - worker.checked.made;
    progress_.checks.passed += checks->passed - worker.checked.passed;
    progress_.checks.rejected += checks->rejected - worker.checked.rejected;
    worker.checked = *checks;
  } else if (const auto executed = fuzz_executed(line)) {
    progress_.executions += std::max<std::int64_t>(0, *executed - worker.executed);
    worker.executed = std::max(worker.executed, *executed);
  } else if (const auto artifact = fuzz_artifact(line)) {
    worker.artifact = *artifact;
  } else if (line.starts_with("SUMMARY: ") || line.find("ERROR: ") != std::string::npos) {
    worker.error = line;
  } else if (!line.empty()) {
    worker.last_line = line;
  }
}

// libFuzzer ends with 0 when its time is over, or it was interrupted; else something happened.
void FuzzTurn::end(Worker& worker, const std::function<void(const std::string&)>& say) {
  const RunningCase running(folder_.running(target_, worker.process->id()));
  const int status = worker.process->wait();
  worker.process.reset();
  if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || (asked_ && !worker.reported && worker.artifact.empty()))
    return;
  ++died_;
  const std::string words = !worker.error.empty()       ? worker.error
                            : !worker.last_line.empty() ? worker.last_line
                                                        : how_it_ended(status);
  if (!worker.reported && running.left()) {
    const std::string said = findings_.add_running(target_, running.file, words);
    if (!said.empty()) say(said);
    worker.reported = true;
  }
  if (!worker.reported) {
    if (worker.artifact.empty()) {
      if (progress_.broken.empty()) progress_.broken = "a worker ended: " + words;
    } else if (const std::string said = findings_.add_artifact(target_, worker.artifact, words); !said.empty()) {
      say(said);
    }
  } else if (!worker.artifact.empty()) {
    std::error_code none;
    fs::remove(worker.artifact, none);  // its case says it
  }
  if (died_ >= most_deaths || (died_ >= deaths_without_work && progress_.executions == 0))
    progress_.broken = text("%d workers died, the last of: ", died_) + words;
}

void FuzzTurn::count_time() {
  for (Worker& w : workers_) {
    if (!w.process) continue;
    const double t = fuzz_clock();
    progress_.worker_seconds += t - w.counted;
    w.counted = t;
  }
}

void FuzzTurn::run(double seconds, const std::function<bool()>& stop, const std::function<void()>& tick,
                   const std::function<void(const std::string&)>& say) {
  const double begin = fuzz_clock(), until = begin + seconds;
  for (Worker& w : workers_) start(w, seconds);
  double asked_at = 0;
  for (;;) {
    std::vector<pollfd> files;
    for (const Worker& w : workers_)
      if (w.process) files.push_back({w.process->file(), POLLIN, 0});
    if (files.empty()) return;
    poll(files.data(), files.size(), 1000);
    count_time();
    for (Worker& w : workers_) {
      if (!w.process || w.process->read_lines([&](const std::string& line) { read(w, line, say); })) continue;
      end(w, say);
      if (!asked_ && progress_.broken.empty() && until - fuzz_clock() > 1) start(w, until - fuzz_clock());
    }
    tick();
    // A second more than its own clock gives it: the last input may be a slow one.
    if (!asked_ && (stop() || !progress_.broken.empty() || fuzz_clock() > until + 2)) {
      asked_ = true;
      asked_at = fuzz_clock();
      for (const Worker& w : workers_)
        if (w.process) w.process->interrupt();
    }
    if (asked_ && fuzz_clock() > asked_at + 10)
      for (const Worker& w : workers_)
        if (w.process) w.process->kill();
  }
}

}  // namespace attest
