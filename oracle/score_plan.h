// How a value family steers scores, and how q and k are chosen so that scale * q.k hits the target in any format.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case.h"

namespace attest {

// A parameter of the case's family: the given value or the family's default.
double parameter(const Values& values, std::string_view name);

// Target of the score of key j: base + delta[j] + noise. For a merge the keys are the parts.
struct ScorePlan {
  bool steered = false;       // false: q and k are drawn at random and the scores are what comes out
  double base = 0;            // common to all keys
  std::vector<double> delta;  // [keys] or empty (all 0)
  double noise = 0;           // standard deviation of the rest of the score
  // Keys that share their noise have the same rest of k: 1 = none, 2 = neighbours in pairs, 0 = all keys.
  std::int64_t sharing = 1;
};
ScorePlan plan_scores(const Case& c);

// q and k on the steering coordinates. Storage keeps powers of two exactly, so q holds a power of two p and k holds
// target / (scale p): equal targets give equal stored scores, and a target is missed by the rounding of k alone.
// p is near sqrt(target / scale), which keeps both within fp16's 65504 up to targets of 4e9 * scale; beyond that they
// are cut to half the format's range and the score falls short.
struct Steering {
  double q = 0;     // p
  double unit = 0;  // k = target * unit
  double most = 0;
  double k(double target) const;
};
Steering steer(double largest_target, double scale, double most);

}  // namespace attest
