// Checks that arrive from workers in any order, counted in the order of the plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/tool/judging.h"

namespace attest {

enum class CheckEnding : std::uint8_t { answered, crashed, hung };

// What one check came to, as it arrives from a worker.
struct Arrival {
  CheckEnding ending = CheckEnding::answered;
  std::string inapplicable;  // why the law does not bind; then the rest is empty
  std::string hash;          // of a generated case, if its check was answered
  std::string case_text;     // of a generated case that fails
  CheckResult result;
};

// Takes the checks in the plan's order, whatever the order in which they arrive: what is counted, and after how many
// crashes a pair is stopped, does not depend on the number of workers.
class Counting {
 public:
  explicit Counting(Judging& judging) : judging_(judging), pairs_(judging.plan.pairs.size()) {}

  // The next unit to be checked, if it is any use.
  std::optional<std::size_t> next();
  void add(std::size_t order, Arrival arrival);
  // After Ctrl-C: what has arrived behind checks that were given up.
  void count_all();
  // How the check ended whose failure the pair's tally keeps.
  CheckEnding ending_of_failure(std::size_t pair) const { return pairs_[pair].failure; }

 private:
  struct PairState {
    int crashes = 0, hangs = 0;
    CheckEnding failure = CheckEnding::answered;
  };

  bool is_stopped(std::size_t pair) const { return !judging_.result.tallies[pair].stopped.empty(); }
  void count_arrived();
  void count(std::size_t order, const Arrival& a);
  void stop_where_due(std::size_t pair, CheckEnding ending);

  Judging& judging_;
  std::vector<PairState> pairs_;
  std::map<const LoadedKernel*, int> hangs_;
  std::map<std::size_t, Arrival> arrived_;
  std::size_t asked_ = 0, counted_ = 0;
};

}  // namespace attest
