// What a benchmark says: a line for each cell as it is measured, a summary, JSON and Markdown.
#pragma once

#include <string>

#include "reports/tool/bench_result.h"

namespace attest {

// "decode.bf16.b8.16384  3503 GB/s cuda.decode.bf16.p16 | flash-gqa 3275 1.07x | cudnn 3391 1.03x | differs 2.4e-04"
std::string bench_line(const BenchCellResult& cell, BenchTiming timing);
// What the run came to: smallest ratios, bandwidths, what was wrong, and the verdict as the last line.
std::string bench_summary(const BenchResult& result, const BenchRequirement& required);

struct BenchAbout {
  std::string command, build;  // how it was called; hash of the executable
  int rounds = 3;
  std::uint64_t seed = 1;
};
// "attest-bench/1". `running`: of a run that has not ended; killed, it leaves this.
std::string bench_json(const BenchResult& result, const BenchRequirement& required, const BenchAbout& about,
                       bool running);
std::string bench_markdown(const BenchResult& result, const BenchRequirement& required, const BenchAbout& about);

}  // namespace attest
