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

FuzzTurn::FuzzTurn(const FuzzTarget& target, const FuzzOptions& options, const FuzzFolder& folder, FuzzEngine& engine,
                   FuzzFindings& findings, FuzzProgress& progress, std::uint64_t seed)
    : target_(target),
      options_(options),
      folder_(folder),
      engine_(engine),
      findings_(findings),
      progress_(progress),
      seed_(seed),
      workers_(static_cast<std::size_t>(options.jobs)) {}

void FuzzTurn::start(Worker& worker, double seconds) {
  worker = Worker();
  worker.number = started_++;
  worker.counted = fuzz_clock();
  FuzzCommand command = engine_.worker(target_, folder_, worker.number, seconds, seed_++);
  for (auto& variable : fuzz_environment(options_)) command.environment.push_back(std::move(variable));
  worker.process = std::make_unique<FuzzProcess>(command.words, folder_.findings().string(), command.environment);
}

void FuzzTurn::advance(Worker& worker, const FuzzStatus& status) {
  progress_.executions += std::max<std::int64_t>(0, status.executions - worker.executed);
  worker.executed = std::max(worker.executed, status.executions);
  progress_.edges = std::max(progress_.edges, status.edges);
  progress_.features = std::max(progress_.features, status.features);
}

// What an engine says of a worker outside its output.
void FuzzTurn::look(Worker& worker) {
  const auto status = engine_.status(target_, folder_, worker.number);
  if (!status) return;
  advance(worker, *status);
  progress_.ungathered += std::max<std::int64_t>(0, status->inputs - worker.keeps);
  worker.keeps = std::max(worker.keeps, status->inputs);
}

void FuzzTurn::read(Worker& worker, const std::string& line, const Say& say) {
  if (const auto status = fuzz_status(line)) {
    advance(worker, *status);
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
    FuzzStatus status;
    status.executions = *executed;
    advance(worker, status);
  } else if (const auto artifact = fuzz_artifact(line)) {
    worker.artifact = *artifact;
  } else if (const auto crash = engine_.crash(target_, folder_, worker.number, line)) {
    add_crash(*crash, say);
  } else if (fuzz_error(line)) {
    worker.error = fuzz_plain(line);
  } else if (!line.empty() && line[0] != ' ') {  // a blank goes on with the line before
    worker.last_line = fuzz_plain(line);
  }
}

void FuzzTurn::died(const std::string& words, int most) {
  if (++died_ >= most) progress_.broken = text("it died %d times, the last time of: ", died_) + words;
}

void FuzzTurn::add_crash(const FuzzCrash& crash, const Say& say) {
  if (died_ >= most_deaths) return;  // its bytes stay where they are
  const std::string said = findings_.add_artifact(target_, crash.artifact, crash.words);
  if (!said.empty()) say(said);
  died(crash.words, most_deaths);
}

void FuzzTurn::add_crashes(const Say& say) {
  for (const FuzzCrash& crash : engine_.crashes(target_, folder_)) add_crash(crash, say);
}

// Engines end with 0 when their time is over, or they were interrupted; else something happened.
void FuzzTurn::end(Worker& worker, const Say& say) {
  const RunningCase running(folder_.running(target_, worker.process->id()));
  const int status = worker.process->wait();
  worker.process.reset();
  look(worker);
  if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || (asked_ && !worker.reported && worker.artifact.empty()))
    return;
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
  died(words, progress_.executions == 0 ? deaths_without_work : most_deaths);
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
                   const Say& say) {
  // First what a campaign that was killed left.
  add_crashes(say);
  engine_.gather(target_, folder_);
  work(fuzz_clock() + seconds, stop, tick, say);
  add_crashes(say);
  engine_.gather(target_, folder_);
  progress_.ungathered = 0;
}

void FuzzTurn::work(double until, const std::function<bool()>& stop, const std::function<void()>& tick,
                    const Say& say) {
  for (Worker& w : workers_) start(w, until - fuzz_clock());
  double asked_at = 0;
  for (;;) {
    std::vector<pollfd> files;
    for (const Worker& w : workers_)
      if (w.process) files.push_back({w.process->file(), POLLIN, 0});
    if (files.empty()) return;
    poll(files.data(), files.size(), 1000);
    count_time();
    for (Worker& w : workers_) {
      if (!w.process) continue;
      if (w.process->read_lines([&](const std::string& line) { read(w, line, say); })) {
        look(w);
        continue;
      }
      end(w, say);
      if (!asked_ && progress_.broken.empty() && until - fuzz_clock() > 1) start(w, until - fuzz_clock());
    }
    add_crashes(say);
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
