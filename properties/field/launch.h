// One problem in memory and a kernel called on it as a test program would: no Contract is asked, nothing is judged.
#pragma once

#include <string>
#include <vector>

#include "oracle/problem.h"
#include "properties/field/field.h"

namespace attest::field {

class Launch {
 public:
  // Keys that no row sees hold what the case says, as in a cache that is not full; around the tensors and under the
  // outputs stands what the project puts there.
  // lse: whether it is asked for.
  Launch(const Case& c, const Project& project, bool lse = true);

  // False if the kernel refuses (fault() is empty then), fails or throws.
  bool run(const Kernel& kernel);
  const std::string& fault() const { return fault_; }
  void prefill();
  // In how many splits the keys are to be cut; 0 leaves it to the kernel.
  void split(std::int64_t splits) { problem_.mutable_abi().tiling.splits = splits; }

  const Problem& problem() const { return problem_; }
  Outputs outputs() const;                  // LSE is empty where it was not asked for
  std::vector<std::uint64_t> bits() const;  // of O, then LSE
  // Whether O and LSE are the first entries of those of a larger batch, bit for bit.
  bool is_start_of(const Launch& whole) const;

  // What the run damaged besides its outputs.
  struct Damage {
    std::string report;
    bool inputs = false, margins = false;
  };
  Damage damage() const;

 private:
  Problem problem_;
  std::uint8_t stale_;
  bool lse_;
  std::string fault_;
};

}  // namespace attest::field
