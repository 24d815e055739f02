// One target at work: several workers on a shared corpus, for a while.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reports/tool/fuzz/engine.h"
#include "reports/tool/fuzz/findings.h"
#include "reports/tool/fuzz/lines.h"
#include "reports/tool/fuzz/process.h"

namespace attest {

// What is known of a target, over all its turns.
struct FuzzProgress {
  std::int64_t executions = 0;  // of workers that have ended, and of those at work
  double worker_seconds = 0;    // time at work, all workers added up
  std::int64_t edges = 0;
  std::int64_t features = -1;           // -1: the engine has none
  std::int64_t ungathered = 0;          // inputs that workers keep for themselves so far
  FuzzChecks checks;                    // where a target says them
  std::map<std::string, double> worst;  // error/bound by kernel
  std::string broken;                   // why it cannot work
  double rate() const { return worker_seconds > 0 ? static_cast<double>(executions) / worker_seconds : 0; }
  std::pair<std::string, double> worst_of_all() const;
};

class FuzzTurn {
 public:
  using Say = std::function<void(const std::string&)>;
  FuzzTurn(const FuzzTarget& target, const FuzzOptions& options, const FuzzFolder& folder, FuzzEngine& engine,
           FuzzFindings& findings, FuzzProgress& progress, std::uint64_t seed);

  // For about so many seconds, or until stop says so. tick is called about once a second; say with every finding.
  void run(double seconds, const std::function<bool()>& stop, const std::function<void()>& tick, const Say& say);

 private:
  struct Worker {
    std::unique_ptr<FuzzProcess> process;
    int number = 0;
    std::int64_t executed = 0, keeps = 0;  // executions, and inputs that it keeps for itself
    FuzzChecks checked;
    std::string artifact, error, last_line;  // what it said at its end
    bool reported = false;                   // a finding of its own
    double counted = 0;                      // until when its time is in worker_seconds
  };
  void start(Worker& worker, double seconds);
  void work(double until, const std::function<bool()>& stop, const std::function<void()>& tick, const Say& say);
  void read(Worker& worker, const std::string& line, const Say& say);
  void advance(Worker& worker, const FuzzStatus& status);
  void look(Worker& worker);
  void end(Worker& worker, const Say& say);
  void died(const std::string& words, int most);
  void add_crash(const FuzzCrash& crash, const Say& say);
  void add_crashes(const Say& say);
  void count_time();

  const FuzzTarget& target_;
  const FuzzOptions& options_;
  const FuzzFolder& folder_;
  FuzzEngine& engine_;
  FuzzFindings& findings_;
  FuzzProgress& progress_;
  std::uint64_t seed_;
  std::vector<Worker> workers_;
  bool asked_ = false;  // to end
  int started_ = 0;     // workers
  int died_ = 0;        // workers that ended by themselves, and crashes of those that went on
};

}  // namespace attest
