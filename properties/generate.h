// Case generation, shared by every driver. Generate first, never filter the edge away.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case.h"
#include "properties/law.h"

namespace attest {

// Counter-based random choices (Philox): the same seed gives the same choices everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);
  std::uint64_t bits();
  std::int64_t between(std::int64_t lo, std::int64_t hi);  // inclusive
  double unit();                                           // [0, 1)
  bool chance(double p) { return unit() < p; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
};

// A case for this kernel and law. size in [0, 1] grows shapes; the kernel's operation, formats and limits are honoured
// where they are known from its Contract; every other refusal is the kernel's own and is counted.
Case generate_case(const Kernel& kernel, const Law& law, Random& random, double size);

// Some kernels are for causal problems only, and say so by refusing the smallest problem without a causal mask.
bool needs_causal(const Kernel& kernel);

// Simpler cases that may still fail, simplest first: fewer heads, shorter sequences, smaller tiles, simpler family.
std::vector<Case> shrink_case(const Case& c);

}  // namespace attest
