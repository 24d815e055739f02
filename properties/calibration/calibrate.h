// The whole study: which kernels, how many outputs of each, and the record of what came out.
#pragma once

#include <ostream>
#include <vector>

#include "properties/calibration/study.h"
#include "properties/calibration/tail.h"

namespace attest::calibration {

struct Options {
  std::uint64_t seed = 1;
  std::int64_t outputs = 10'000'000;  // of each group of thresholds; as many for the law `expected`
  int jobs = 1;                       // threads; the figures do not depend on it
};

struct Group {
  const UnbiasedThreshold* threshold = nullptr;
  std::int64_t outputs = 0, kernels = 0;
  Tail tail;  // of its own z
  // Of what the rule is applied to: its own, but for "P rounded, O rounded". There z^2 is a mean of that of P and that
  // of the output's rounding in shares that differ from shape to shape; the largest z are all of the second kind, and a
  // tail fitted to the mixture would say more about the shapes than about chance.
  Tail rule;
  double most = 0;
};

// How often the law finds a bias: of checks, before and after O is rounded.
struct Power {
  std::string bias;
  Aggregates kept, rounded;
};

struct Study {
  Options options;
  std::vector<Aggregates> aggregates;  // kernels in their order, O kept before O rounded
  std::vector<Tier> tiers;
  std::vector<Group> groups;  // in the order of the thresholds
  std::vector<Power> powers;
  Spread spread;  // over all kernels
};

// Built-in forward kernels, the mutants' controls, and the variants: all are correct.
Study calibrate(const Options& options);

// The record, in Markdown.
void write(std::ostream& out, const Study& study);

}  // namespace attest::calibration
