// What each tier of the truth computes, for finite inputs only: weights w_j = exp(score_j - shift) with the error of
// each, then sums over them. One shift serves all columns, so an escalated row computes its weights once a tier.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "oracle/truth.h"

namespace attest {

class SoftmaxTier {
 public:
  virtual ~SoftmaxTier() = default;

  // sum w_j v_j[e] / sum w_j for e = first ... first + out.size() - 1. v: [n] rows of finite values.
  virtual void means(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const = 0;

  // sum w_j v_j[e], relative to the shift. Meant for given scores, whose shift is their maximum, exactly.
  virtual void sums(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const = 0;

  // shift + log sum w_j.
  virtual TruthElement log_sum() const = 0;
};

// Scores of a row, scale * q.k_j, or given exactly. At least one; all inputs finite. A tier that cannot hold them
// (overflow) answers with radius = +inf, never with NaN.
std::unique_ptr<SoftmaxTier> make_fp64_tier(const Row& row);
std::unique_ptr<SoftmaxTier> make_fp64_tier(std::span<const double> scores);
std::unique_ptr<SoftmaxTier> make_double_double_tier(const Row& row);
std::unique_ptr<SoftmaxTier> make_double_double_tier(std::span<const double> scores);
std::unique_ptr<SoftmaxTier> make_exact_tier(const Row& row, Tier tier);
std::unique_ptr<SoftmaxTier> make_exact_tier(std::span<const double> scores, Tier tier);

// Where the error of the largest score goes, given the errors of all (in log-weight). Small: it stays with its own
// weight, and cancels from everybody else's. Large: that weight is exactly 1 by definition of the shift, the error
// joins that of all others and of the shift, and a row that one key dominates stays certain.
struct Frame {
  double top = 0, others = 0, shift = 0;
};
Frame error_frame(std::span<const double> error, std::int64_t top);

// A gap within the range of exp, and the bound of its error from the relative and absolute errors of what was computed.
struct Gap {
  double gap, tau;
};
Gap gap_of(double computed, double relative, double absolute);

// Bound of |w - w^| for w^ = fl(exp(-gap)), true log-weight within tau of -gap, plus 2^-1073 for a subnormal w^.
// Never NaN; +inf where tau tells nothing.
double weight_error(double w, double gap, double tau);

// A radius as reported: inflated for its own evaluation in double by `terms` operations; +inf unless it is finite.
double certified(double radius, std::int64_t terms);

// out[e] = sum_j rho_j |v_j[first + e] - centre[e]|, each term rounded to nearest.
void deviations(std::span<const double> rho, std::span<const double* const> v, std::int64_t first,
                std::span<const double> centre, std::span<double> out);

}  // namespace attest
