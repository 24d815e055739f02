// What drives the workers of a campaign: libFuzzer, which each target brings along, or AFL++, a program of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/tool/fuzz/lines.h"
#include "reports/tool/fuzz/targets.h"

namespace attest {

struct FuzzCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;  // set beside our own
};

// Bytes on which a target died under a worker that goes on, moved to where findings are.
struct FuzzCrash {
  std::string artifact, words;
};

// Engines that end with the crash say so in their output (lines.h); those that go on, in files.
class FuzzEngine {
 public:
  virtual ~FuzzEngine() = default;
  FuzzEngine() = default;
  FuzzEngine(const FuzzEngine&) = delete;
  FuzzEngine& operator=(const FuzzEngine&) = delete;

  // The CMake preset that builds its targets.
  virtual const char* preset() const = 0;
  // Seconds after which the next target has its turn: long beside what beginning again costs.
  virtual double longest_turn() const = 0;
  // Worker 0, 1, 2, ... of a turn, in this order.
  virtual FuzzCommand worker(const FuzzTarget& target, const FuzzFolder& folder, int number, double seconds,
                             std::uint64_t seed) = 0;
  // Runs the target on these bytes alone.
  virtual std::vector<std::string> replay(const FuzzTarget& target, const std::string& bytes) const = 0;
  // Copies those inputs of the target into the folder `smaller` that reach something new; empty: it cannot.
  virtual std::vector<std::string> minimise(const FuzzTarget& target, const FuzzFolder& folder,
                                            const std::string& smaller) const = 0;

  // How far that worker is; nothing where its output says it. inputs: what it keeps for itself until gather().
  virtual std::optional<FuzzStatus> status(const FuzzTarget&, const FuzzFolder&, int) const { return std::nullopt; }
  // Crashes since the last call, and those that a killed campaign left.
  virtual std::vector<FuzzCrash> crashes(const FuzzTarget&, const FuzzFolder&) { return {}; }
  // An input of the campaign's own on which the target dies, if that worker's line tells of one.
  virtual std::optional<FuzzCrash> crash(const FuzzTarget&, const FuzzFolder&, int, const std::string&) { return {}; }
  // Before a turn and after it, while no worker runs: what workers kept for themselves becomes part of the inputs.
  virtual void gather(const FuzzTarget&, const FuzzFolder&) {}
};

// By the name that --engine takes. Raises UsageError where the engine is not installed.
std::unique_ptr<FuzzEngine> fuzz_engine(const FuzzOptions& options);

}  // namespace attest
