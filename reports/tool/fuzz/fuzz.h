// `attest fuzz`: campaigns of the fuzz targets, and how fast they find planted bugs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest {

struct FuzzOptions {
  std::vector<std::string> targets;      // globs over names without "fuzz_"; empty: all that are built
  std::vector<std::string> kernels;      // globs handed to the targets; empty: all
  std::string engine = "libfuzzer";      // or "afl"
  std::string bin;                       // directory of the targets
  std::string corpus = "attest-fuzz";    // the campaign: inputs, log, findings on their way
  std::string stored = "none";           // inputs to begin with, DIR/NAME for each target; or "none"
  std::string findings = "attest-fuzz";  // where .case files of findings go; the campaign itself: DIR/findings
  double seconds = 0;                    // 0: until Ctrl-C
  int jobs = 0;
  std::uint64_t seed = 1;
  bool keep_all = false;  // no minimising at the end
  bool quiet = false;
  // The race: an empty corpus for each mutant, one worker on it, until it is found.
  std::vector<std::string> mutants;
  bool race = false;
  std::string markdown;  // its table
};

// Exit code: 0 nothing was found, 1 a finding, 3 a target could not do its work. Ctrl-C ends a campaign in order, with
// the code of what it found. A campaign that was killed is gone on with by the next. Raises UsageError.
int run_fuzz(const FuzzOptions& options);

// Exit code: 0 every mutant was found, nine of ten within 60 s; 1 not so. Raises UsageError.
int run_fuzz_race(const FuzzOptions& options);

}  // namespace attest
