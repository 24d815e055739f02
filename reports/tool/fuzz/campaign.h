// One target at work: several workers on a shared corpus, for a while.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reports/tool/fuzz/findings.h"
#include "reports/tool/fuzz/lines.h"
#include "reports/tool/fuzz/process.h"

namespace attest {

// What is known of a target, over all its turns.
struct FuzzProgress {
  std::int64_t executions = 0;  // of workers that have ended, and of those at work
  double worker_seconds = 0;    // time at work, all workers added up
  std::int64_t edges = 0, features = 0;
  FuzzChecks checks;                    // where a target says them
  std::map<std::string, double> worst;  // error/bound by kernel
  std::string broken;                   // why it cannot work
  double rate() const { return worker_seconds > 0 ? static_cast<double>(executions) / worker_seconds : 0; }
  std::pair<std::string, double> worst_of_all() const;
};

class FuzzTurn {
 public:
  FuzzTurn(const FuzzTarget& target, const FuzzOptions& options, const FuzzFolder& folder, FuzzFindings& findings,
           FuzzProgress& progress, std::uint64_t seed);

  // For about so many seconds, or until stop says so. tick is called about once a second; say with every finding.
  void run(double seconds, const std::function<bool()>& stop, const std::function<void()>& tick,
           const std::function<void(const std::string&)>& say);

 private:
  struct Worker {
    std::unique_ptr<FuzzProcess> process;
    std::int64_t executed = 0;
    FuzzChecks checked;
    std::string artifact, error, last_line;  // what it said at its end
    bool reported = false;                   // a finding of its own
    double counted = 0;                      // until when its time is in worker_seconds
  };
  std::vector<std::string> command(double seconds, std::uint64_t seed) const;
  void start(Worker& worker, double seconds);
  void read(Worker& worker, const std::string& line, const std::function<void(const std::string&)>& say);
  void end(Worker& worker, const std::function<void(const std::string&)>& say);
  void count_time();

  const FuzzTarget& target_;
  const FuzzOptions& options_;
  const FuzzFolder& folder_;
  FuzzFindings& findings_;
  FuzzProgress& progress_;
  std::uint64_t seed_;
  std::vector<Worker> workers_;
  bool asked_ = false;  // to end
  int died_ = 0;        // workers that ended by themselves
};

}  // namespace attest
