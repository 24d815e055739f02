// A soak: the gate, round after round, over kernels that are known to be right. It looks for false alarms.
#pragma once

#include <cstdint>
#include <string>

#include "reports/tool/plan.h"

namespace attest {

struct SoakOptions {
  GateOptions gate;  // seed: that from which every round's is derived; seconds: of the whole; cases: of each round
  std::string log = "attest-soak.jsonl";
  std::int64_t rounds = 0;  // in the whole log; 0: until something else ends it
  std::int64_t checks = 0;  // in the whole log, of those that passed or failed; 0: the same
};

// Goes on where the log ends; ends by rounds, checks, seconds, Ctrl-C or SIGTERM. Returns the exit code for all rounds
// of the log: 0, 1 or 3. Raises UsageError, PluginError or CaseError.
int run_soak(const SoakOptions& options);

// The seed of a round: 53 bits, so that every reader of JSON keeps them.
std::uint64_t round_seed(std::uint64_t seed, std::int64_t round);

}  // namespace attest
