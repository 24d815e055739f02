// Carries a benchmark out: fills, checks, and times kernels and peers in turns, cell by cell.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reports/tool/bench_peer.h"
#include "reports/tool/bench_result.h"

namespace attest {

struct BenchPlan {
  std::vector<BenchCell> cells;
  std::vector<const attn_kernel*> kernels;     // to be timed, where they suit a cell
  std::vector<const attn_kernel*> references;  // to be compared with: the first of another name that takes the cell
  BenchEffort effort;
  int rounds = 3;      // of all contenders of a cell in turns
  double seconds = 0;  // begin no cell after so long; 0: no limit
  std::uint64_t seed = 1;
};

// Kernels that match the globs and are for this device, all of a plan's references, and the cells that then have
// something to time.
BenchPlan bench_plan(std::span<const attn_kernel> kernels, const std::vector<std::string>& globs,
                     const std::vector<BenchCell>& cells, bool with_peer);

struct BenchWatch {
  std::function<bool()> stop;                                                // asked between samples of contenders
  std::function<void(const std::string& what)> progress;                     // what is being measured
  std::function<void(const BenchResult&, const BenchCellResult&)> measured;  // a cell is complete
};

// Adds to `result`. The peer may be nullptr, and may be lost on the way: then the rest goes on without it. A failure
// of the device ends the run with result.fault.
void bench_measure(BenchDevice& device, BenchPeer* peer, const BenchPlan& plan, const BenchWatch& watch,
                   BenchResult& result);

}  // namespace attest
