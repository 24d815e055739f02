// `attest bench`: how fast our kernels are, beside peers measured in the same run.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/bench_result.h"

namespace attest {

struct BenchOptions {
  std::string device = "cuda";
  std::vector<std::string> kernels;
  BenchChoice choice;
  std::string peers = "torch", python = "python3";
  std::string json, markdown;
  std::string require, timing = "device";
  double ratio = 0, seconds = 0;
  int rounds = 3, effort = 20;  // effort: ms of each contender and round
  std::uint64_t seed = 1;
  bool list = false, quiet = false;
  std::string command;  // as typed, for the reports
};

// Measures, reports, writes the files asked for; returns the exit code. Ctrl-C ends it early and keeps what was
// measured. Raises UsageError.
int run_bench(const BenchOptions& options);

}  // namespace attest
