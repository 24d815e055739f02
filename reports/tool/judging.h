// What checking a plan needs, whether its kernels run on threads or in worker processes.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "reports/tool/gate.h"

namespace attest {

class Judging {
 public:
  Judging(const GateOptions& options, const Plan& plan, const std::vector<Waiver>& ledger);

  const GateOptions& options;
  const Plan& plan;
  const std::vector<Waiver>& ledger;
  GateResult result;
  std::mutex lock;  // of result, where there are threads
  int jobs = 1;

  // No check is to be begun any more: Ctrl-C, or --seconds have passed.
  bool out_of_time() const;
  bool interrupted() const;

  const CorpusCase* replayed(const Unit& unit) const;  // nullptr: generated
  // "generated 3 (hash)", or the corpus case's name.
  std::string case_name(const Unit& unit, const std::string& hash) const;
  // The file that a failing generated case of this pair is saved as.
  std::string file_name(const Pair& pair, const std::string& hash) const;

  // All checks that this run makes have been made.
  void note_end();

  // Progress for people, and the partial report.
  void show_progress();
  void show_shrinking(std::size_t failures) const;
  void clear_progress() const;

  // Pairs with a failure, and how many checks each may take to shrink it: bounded over all pairs, and a count, so that
  // a gate on which everything fails still ends soon, and always in the same way.
  std::vector<std::size_t> failed_pairs() const;
  static int shrinking_checks(std::size_t failed);
  // Saves the failure of this pair, shrunk by now, and says how to repeat it.
  void save(std::size_t pair, const std::string& more_flags);

  double seconds() const;

 private:
  bool live_ = false;
  double written_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Carry out the plan, then shrink and save the first failure of each pair. On threads a kernel that crashes takes the
// gate along; in workers it is a failure like others.
void check_on_threads(Judging& judging);
void check_in_workers(Judging& judging);

}  // namespace attest
