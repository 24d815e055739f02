// libFuzzer: each target is a program that fuzzes itself, reads and writes the folder of inputs, and ends with a
// finding.
#pragma once

#include "reports/tool/fuzz/engine.h"

namespace attest {

class LibFuzzer : public FuzzEngine {
 public:
  const char* preset() const override { return "fuzz"; }
  double longest_turn() const override { return 60; }
  FuzzCommand worker(const FuzzTarget& target, const FuzzFolder& folder, int number, double seconds,
                     std::uint64_t seed) override;
  std::vector<std::string> replay(const FuzzTarget& target, const std::string& bytes) const override;
  std::vector<std::string> minimise(const FuzzTarget& target, const FuzzFolder& folder,
                                    const std::string& smaller) const override;
};

}  // namespace attest
