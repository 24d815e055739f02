// compute-sanitizer as a judge: for bugs that results show by luck only, its tools stand beside the laws.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "properties/law.h"

namespace attest {

// memcheck, initcheck, racecheck, synccheck, as columns of the kill matrix: a name and a statement, nothing to call.
std::span<const Law> sanitizer_tools();

// Path of compute-sanitizer on PATH, or in a CUDA toolkit; "" if it is nowhere.
std::string find_sanitizer();
// What it says of its version; "" if it cannot be run.
std::string sanitizer_version(const std::string& sanitizer);

struct SanitizerRun {
  bool ran = false;      // the tool has judged
  bool found = false;    // it reported an error
  std::string evidence;  // its first finding, or why it has not judged
  double seconds = 0;
};

// What the output of a tool says.
SanitizerRun read_sanitizer(const std::string& output);

// Runs a command under the tool. One that does not end in time is a finding: the command alone takes a moment.
SanitizerRun run_sanitizer(const std::string& sanitizer, const std::string& tool,
                           const std::vector<std::string>& command, double seconds);

}  // namespace attest
