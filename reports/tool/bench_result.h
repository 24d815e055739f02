// What a benchmark came to, and what can be said of it: who is fastest, by how much, and the exit code.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/tool/bench_cells.h"
#include "reports/tool/bench_device.h"
#include "reports/tool/bench_times.h"

namespace attest {

enum class BenchRole { kernel, peer, yardstick };
// refused: it says that it does not take the cell; failed: it could not be run or timed; wrong: its output is.
enum class BenchStatus { ok, refused, failed, wrong };
enum class BenchTiming { device, call };

struct BenchContender {
  std::string name;
  BenchRole role = BenchRole::kernel;
  BenchStatus status = BenchStatus::ok;
  std::string reason;
  BenchTimes times;
  double bytes = 0;  // moved by one call, where that is not the cell's
  // Outputs beside another's, by its name.
  std::vector<std::pair<std::string, BenchDifference>> differences;

  const std::vector<double>& samples(BenchTiming t) const {
    return t == BenchTiming::device ? times.device : times.call;
  }
  bool timed() const { return status == BenchStatus::ok && !times.device.empty(); }
};

struct BenchCellResult {
  BenchCell cell;
  std::size_t sets = 1;
  std::string skipped;  // why it was not measured
  std::vector<BenchContender> contenders;
  BenchClocks clocks;  // read right after the last sample

  // The fastest that was timed, or nullptr: by role and begin of its name.
  const BenchContender* fastest(BenchRole role, const std::string& prefix, BenchTiming timing) const;
  double rate(const BenchContender& c, BenchTiming timing) const;  // of the median, in the cell's unit
  // How many times faster our fastest kernel is than the fastest peer of that name; 0 where either is missing.
  double ratio(const std::string& peer, BenchTiming timing) const;
  // Our fastest kernel's bandwidth over that of a copy that moves as many bytes, measured in turns with it; 0 where
  // either is missing.
  double share_of_copy(BenchTiming timing) const;
};

// Names that ratios are taken to.
inline constexpr const char* flash_peer = "torch.flash";
inline constexpr const char* cudnn_peer = "torch.cudnn";

struct BenchResult {
  std::vector<std::pair<std::string, std::string>> facts;  // of the device
  std::map<std::string, std::string> peer;                 // what the peer said of itself; empty: there is none
  std::string no_peer;                                     // why
  bool shared = false;                                     // the peer computes on our tensors
  std::string not_shared;                                  // why not
  std::vector<BenchCellResult> cells;
  std::size_t planned = 0;
  double seconds = 0;
  bool truncated = false, interrupted = false;
  std::string not_run;  // there is no device: why
  std::string fault;    // the device failed: what it said

  struct Smallest {
    double ratio = 0;
    std::string cell;
    std::size_t cells = 0;  // with a ratio
  };
  Smallest smallest(const std::string& peer, BenchTiming timing) const;
  std::vector<std::string> below(double ratio, BenchTiming timing) const;  // cells, to FLASH
  std::vector<std::string> wrong() const;                                  // "kernel in cell: reason"
  double copy_rate() const;  // of the cell of kind copy, GB/s; 0: not measured
};

struct BenchRequirement {
  bool device = false;  // --require cuda
  double ratio = 0;     // --require-ratio; 0: none
  BenchTiming timing = BenchTiming::device;
};

// "pass", "fail", "incomplete" (required and not measured), "interrupted" or "not_run".
std::string bench_verdict(const BenchResult& result, const BenchRequirement& required);
int bench_exit_code(const BenchResult& result, const BenchRequirement& required);

// Is an output too far from another one of the same inputs to be timed as the same computation? The gate decides what
// is right; this sees a kernel that did not run, or not all of it. Four units of the format, of the largest output.
bool bench_is_wrong(const BenchDifference& difference, std::int32_t dtype);

}  // namespace attest
