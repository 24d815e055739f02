// AFL++: afl-fuzz processes on one sync folder. Each keeps inputs and crashes in files of its own and goes on after a
// crash.
#pragma once

#include <filesystem>
#include <set>

#include "reports/tool/fuzz/engine.h"

namespace attest {

class Afl : public FuzzEngine {
 public:
  // Raises UsageError where there is no afl-fuzz on PATH.
  Afl();
  const char* preset() const override { return "afl"; }
  // afl-fuzz runs each input several times before it begins.
  double longest_turn() const override { return 600; }
  FuzzCommand worker(const FuzzTarget& target, const FuzzFolder& folder, int number, double seconds,
                     std::uint64_t seed) override;
  std::vector<std::string> replay(const FuzzTarget& target, const std::string& bytes) const override;
  // Not at all: AFL++ sees the edges alone, and would throw away what libFuzzer kept for a situation or for its error.
  std::vector<std::string> minimise(const FuzzTarget&, const FuzzFolder&, const std::string&) const override {
    return {};
  }
  std::optional<FuzzStatus> status(const FuzzTarget& target, const FuzzFolder& folder, int number) const override;
  std::vector<FuzzCrash> crashes(const FuzzTarget& target, const FuzzFolder& folder) override;
  std::optional<FuzzCrash> crash(const FuzzTarget& target, const FuzzFolder& folder, int number,
                                 const std::string& line) override;
  void gather(const FuzzTarget& target, const FuzzFolder& folder) override;

 private:
  std::optional<FuzzCrash> take(const FuzzTarget& target, const FuzzFolder& folder, const std::filesystem::path& bytes,
                                const std::string& words);

  std::set<std::string> taken_;  // crashes that have been handed out
};

}  // namespace attest
