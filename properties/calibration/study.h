// What the statistical laws see of a kernel, measured on cases drawn as the laws draw them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "properties/laws/thresholds.h"

namespace attest::calibration {

// Multiples of the spread at which outputs are counted.
inline constexpr std::array<double, 9> kLambdas = {0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6};

// |error| against lambda S alone, before output rounding: the drift, which most errors stay within, is left out.
struct Spread {
  std::int64_t outputs = 0;
  std::array<std::int64_t, kLambdas.size()> beyond{};
  double most = 0;
  void add(double error, double spread);
  void add(const Spread& other);
};

// One kernel, one format of O, the law `unbiased`.
struct Aggregates {
  std::string kernel;
  const UnbiasedThreshold* group = nullptr;
  std::string unbound;    // why the law does not bind the kernel; then the rest is empty
  std::vector<double> z;  // of each check
  std::int64_t outputs = 0, too_few = 0;
  Spread spread;
  double mean() const, sd() const, most() const;
};
// Checks at this seed until the outputs are as many; what a check pools is decided by the law's own code.
Aggregates measure_aggregates(const Kernel& kernel, OutDType out, std::uint64_t seed, std::int64_t outputs);

// One kernel, the law `expected` at lambda = 8.
struct Tier {
  std::string kernel, unbound;
  std::int64_t cases = 0, outputs = 0, failures = 0;
  double worst = 0;  // error / expected bound
};
Tier measure_tier(const Kernel& kernel, std::uint64_t seed, std::int64_t outputs);

}  // namespace attest::calibration
