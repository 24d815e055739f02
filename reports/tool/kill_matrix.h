// What the laws made of each mutant: the data of the kill matrix, and how it is filled.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/mutants/mutants.h"
#include "reports/tool/mutants.h"
#include "reports/tool/plan.h"

namespace attest {

// One cell of the matrix: a mutant under a law.
struct Cell {
  std::int64_t checks = 0;  // until the kill, or all that the budget holds
  bool killed = false;
  std::string killing_case;
};

// One row: what the gate would have seen of this kernel, in the gate's order.
struct KillRow {
  LoadedKernel kernel;
  const mutants::Mutant* mutant = nullptr;                        // nullptr: a control
  std::vector<Cell> cells;                                        // by law
  std::vector<std::pair<const CorpusCase*, std::size_t>> replay;  // corpus cases with the laws that they concern
  std::string first_law, first_case;
  std::int64_t checks_to_kill = 0;
  double seconds_to_kill = 0;  // of processor time, so that a busy machine changes nothing
  std::string reason;          // what the first finding said
  std::string not_run;         // why what must kill it cannot run here, if nothing else killed it

  bool killed() const { return !first_law.empty(); }
  std::string name() const { return mutant ? std::string(mutant->name) : kernel.kernel.name; }
};

// The matrix of one seed.
struct KillMatrix {
  std::uint64_t seed = 0;
  std::string about;             // a paragraph for the report: the device, if there is one
  std::vector<const Law*> laws;  // of GPU mutants: then the tools of compute-sanitizer, as columns of the same kind
  std::vector<KillRow> rows;     // controls first

  std::size_t planted = 0, killed = 0, alarms = 0, late = 0, not_run = 0;
  double median_seconds = 0, most_seconds = 0;

  int kills_of(std::size_t law) const;
  // The mutants that this law alone kills.
  std::vector<const mutants::Mutant*> only_killer_of(std::size_t law) const;
};

// What a caller may do between the checks of a kernel.
struct Watch {
  std::function<void(const Law&, const std::string& name)> before = [](const Law&, const std::string&) {};
  std::function<bool()> ended = [] { return false; };  // after a kill: nothing can run any more
};
// Fills the row: checks in the gate's order until the budget is used up.
void judge_kernel(KillRow& row, const std::vector<const Law*>& laws, int cases, std::uint64_t seed, double lambda,
                  const Watch& watch = {});

// A row for this kernel, with the corpus cases that concern it.
KillRow make_row(Kernel kernel, const mutants::Mutant* mutant, const std::vector<const Law*>& laws,
                 const std::vector<CorpusCase>& corpus, bool with_large = true);

// The totals of a matrix whose rows are filled.
void count(KillMatrix& m, double most_seconds);

// Raises UsageError if no mutant or no law matches. Progress goes to a terminal on standard error.
KillMatrix fill_matrix(const MutantOptions& options, const std::vector<CorpusCase>& corpus, std::uint64_t seed);

}  // namespace attest
