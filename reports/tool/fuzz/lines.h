// What a fuzz target prints, line by line: libFuzzer's own status, and what our targets say of findings and of the
// worst error/bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

// "#1024 NEW cov: 310 ft: 1200 corp: 40/3000b ... exec/s: 512 rss: 90Mb"; a number that is not in the line is -1.
struct FuzzStatus {
  std::int64_t executions = -1, edges = -1, features = -1, inputs = -1, rate = -1;
};
std::optional<FuzzStatus> fuzz_status(std::string_view line);

// "attest-finding: FILE KERNEL LAW MESSAGE".
struct FuzzFinding {
  std::string file, kernel, law, message;
};
std::optional<FuzzFinding> fuzz_finding(std::string_view line);

// "attest-worst: KERNEL RATIO".
struct FuzzWorst {
  std::string kernel;
  double ratio = 0;
};
std::optional<FuzzWorst> fuzz_worst(std::string_view line);

// "attest-checks: 4096 made, 3900 passed, 12 rejected": of one worker so far.
struct FuzzChecks {
  std::int64_t made = 0, passed = 0, rejected = 0;
};
std::optional<FuzzChecks> fuzz_checks(std::string_view line);

// "stat::number_of_executed_units: 5000", at a worker's end.
std::optional<std::int64_t> fuzz_executed(std::string_view line);

// A line that says why a process ends: of a sanitizer, or of our targets.
bool fuzz_error(std::string_view line);

// The line without terminal colours.
std::string fuzz_plain(std::string_view line);

// "artifact_prefix='...'; Test unit written to PATH": the bytes on which a worker died.
std::optional<std::string> fuzz_artifact(std::string_view line);

}  // namespace attest
