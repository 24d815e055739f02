// The fuzz targets that are built, and a campaign's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/tool/fuzz/fuzz.h"

namespace attest {

struct FuzzTarget {
  std::string name;     // "forward"
  std::string program;  // absolute path of fuzz_forward
  // What fuzz_forward.options beside it says, libFuzzer's options by their names, the dictionary as a path. Empty where
  // there is no such file.
  std::map<std::string, std::string> options() const;
};

// Those whose name matches, in the order of their names. Raises UsageError where there is none, with the CMake preset
// that builds them.
std::vector<FuzzTarget> fuzz_targets(const FuzzOptions& options, const char* preset);

// Variables that tell targets which kernels to search.
std::vector<std::pair<std::string, std::string>> fuzz_environment(const FuzzOptions& options);

class FuzzEngine;

// The folder of a campaign: NAME/ has a target's inputs, findings/ is where workers run and leave what they found,
// log.jsonl has the curve. Whatever is killed at whatever moment, no input is lost.
class FuzzFolder {
 public:
  // Makes what is not there, and ends a minimising that was cut off. Raises UsageError.
  FuzzFolder(const FuzzOptions& options, const std::vector<FuzzTarget>& targets);

  std::filesystem::path inputs(const FuzzTarget& target) const { return path_ / target.name; }
  std::filesystem::path findings() const { return path_ / "findings"; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }

  // Where a worker keeps the case whose kernel is running, if its target does.
  std::filesystem::path running(const FuzzTarget& target, std::int64_t process) const {
    return findings() / ("running-" + target.name + "-" + std::to_string(process) + ".case");
  }

  // The target's stored inputs, or "" where there are none.
  std::string stored(const FuzzTarget& target) const;

  // Keeps the inputs that reach something new, stored ones among them, the smallest first. False with the reason if the
  // target failed at it: everything is as it was then. Engines that cannot do it leave all inputs.
  bool minimise(const FuzzTarget& target, const FuzzEngine& engine, std::string& why) const;
  std::int64_t count(const FuzzTarget& target) const;

 private:
  std::filesystem::path path_;
  std::string stored_;
};

}  // namespace attest
