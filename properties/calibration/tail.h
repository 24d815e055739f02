// The upper tail of z over checks, and what it says about values that no sample reaches.
#pragma once

#include <cstddef>
#include <vector>

namespace attest::calibration {

// Fitted to the largest hundredth of a sample, at least 100 values: their number and the mean of their excess over the
// next smaller value u. What lies far below, where checks of other shapes gather, does not count.
//   normal: z is the root of a mean of squares, which is normal far into its tail (Fisher's transformation of chi^2).
//   exponential: heavier than any tail of means of bounded quantities; what is left if the first were wrong.
struct Tail {
  std::size_t sample = 0;
  double share = 0;  // of the sample above u
  double u = 0, mean_excess = 0;
  double mean = 0, sd = 0;  // of the normal distribution whose tail this is

  double normal(double z) const;       // probability of a value above z >= u
  double exponential(double z) const;  // the same
  double quantile(double p) const;     // the z that the normal tail exceeds with probability p
};
Tail fit_tail(std::vector<double> sample);  // at least 1000 values, else std::invalid_argument

}  // namespace attest::calibration
