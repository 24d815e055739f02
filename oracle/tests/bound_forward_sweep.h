// Simulated kernels against their bounds, with a reference far above them. What leaves a bound is a test failure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "oracle/tests/bound_families.h"
#include "oracle/tests/bound_setups.h"

namespace attest::bound_test {

struct Worst {
  double ratio = 0;
  std::string where = "-";
  void take(double q, const char* at) {
    if (q <= ratio) return;
    ratio = q;
    where = at;
  }
};

struct Tally {
  std::int64_t elements = 0, violations = 0, admitted = 0, expected = 0;
  Worst o, lse, expected_o, expected_lse;
  std::map<int, double> by_kind, expected_by_kind;
};

// One row of the kind, n keys, head dims d and d_v, under errors of every sort. The deterministic tier must hold
// always, the expected tier (lambda = 6) on values that were not searched.
void check_row(const SimulatedKernel& s, Kind kind, std::int64_t n, std::int64_t d, std::int64_t d_v,
               std::uint64_t seed, Tally& t);

// Every simulated kernel on rows of every kind; prints the largest error/bound of each. rows: per kind and kernel.
// Returns the number of output elements.
std::int64_t sweep(std::int64_t rows, std::uint64_t seed0);

}  // namespace attest::bound_test
