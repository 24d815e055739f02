// The kill matrix as people and scripts read it.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/kill_matrix.h"

namespace attest {

// A law over all seeds of a run: what the gate would lose without it.
struct LawWorth {
  std::string name;
  std::vector<int> kills;         // by seed
  std::vector<std::string> only;  // mutants that it alone kills, with the seeds if not under all of them
  bool has_own = false;           // one of them names it as the law that must kill it
  bool always_own = false;        // and is killed by no other under any seed
  std::string stays;              // why it stays without one
  // "" if it earns its place: by a mutant of its own, or by a reason to stay where it has none under some seed.
  std::string fault() const;
};
std::vector<LawWorth> worth_of_laws(const std::vector<KillMatrix>& runs);

std::string matrix_text(const KillMatrix& m);
std::string laws_text(const std::vector<LawWorth>& laws);
// Survivors, late kills, false alarms; and mutants that another law than the expected one kills.
std::string problems_text(const KillMatrix& m, double most_seconds);
std::string verdict_line(const KillMatrix& m, bool pass);

std::string matrix_json(const std::vector<KillMatrix>& runs, const std::vector<LawWorth>& laws,
                        const MutantOptions& options, bool pass);
std::string matrix_markdown(const std::vector<KillMatrix>& runs, const std::vector<LawWorth>& laws,
                            const MutantOptions& options, bool pass);

}  // namespace attest
