// Errors of the two sums over keys, P.V and the row sum, and of P's rounding.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {

// In any order a sum of n terms is a tree of height at most n - 1: a relative error of (n - 1) u of the sum of
// magnitudes (Jeannerod and Rump 2013), and one more rounding on the path for each rescale.
void fill_sums(const Arithmetic& a, const KeyPlan& plan, const Row& row, ForwardTerms& t) {
  const bool split = a.contract.algorithm == ATTN_ALG_SPLIT, fa1 = a.contract.algorithm == ATTN_ALG_FA1;
  t.parts = 1;
  if (split) {
    t.parts =
        t.cuts_known ? static_cast<double>(t.segments.size()) : static_cast<double>(std::min(plan.splits, row.size()));
  }
  for (Segment& s : t.segments) {
    const double n = static_cast<double>(s.size()), blocks = static_cast<double>(s.blocks);
    s.pv = a.pv_relative(s.size(), s.pv_steps, s.rises);
    s.sum = gamma_of((n - 1 + static_cast<double>(s.rises)) * a.u);
    if (fa1) {
      // Every block: l r, times O, the block's factor, their sum, and a division. The l that O was divided by and is
      // multiplied with cancels; what stays is the last one, with three roundings a block.
      s.pv = compound(s.pv, gamma_of(blocks * (4 * a.u + a.division)));
      s.sum = gamma_of((n - 1 + 3 * blocks) * a.u);
    }
    if (split) {
      // o_b = acc / l, then its weight and the sum over splits.
      s.pv = compound(s.pv, gamma_of((t.parts + 1) * a.u + a.division));
      if (a.contract.split_merge != ATTN_MERGE_DIVISION_FREE) s.sum = compound(s.sum, gamma_of(t.parts * a.u));
    }
    t.sigma = std::max(t.sigma, s.sum);
  }
  const bool divided_at_the_end = !fa1 && !(split && a.contract.split_merge == ATTN_MERGE_DIVISION_FREE);
  t.division = divided_at_the_end ? a.division : 0;
}

void fill_accumulation(const Arithmetic& a, const RowStats& stats, ForwardTerms& t) {
  const std::size_t n = t.tau.size();
  t.excess.resize(n);
  t.rho.resize(n);
  double T = 0;
  for (std::size_t j = 0; j < n; ++j) {
    // Never w * (exp(tau) - 1) for a large tau: that is 0 * inf = NaN when the gap is beyond 745 and tau beyond 709.
    const double tau = t.tau[j];
    double excess = tau < 0.5 ? stats.w[j] * std::expm1(tau) : std::exp(tau - stats.gap[j]) - stats.w[j];
    excess = std::max(excess, 0.0) + t.true_floor(j);
    t.excess[j] = excess;
    T += excess;
    const double largest = stats.w[j] + excess;
    const bool near_one = t.p_unit[j] < a.p_u;  // then nowhere near the floor
    t.rho[j] = !a.p_rounded ? 0
               : near_one   ? t.p_unit[j] * largest
                            : std::max(a.p_u * largest, std::min(a.p_floor * t.frame, largest));
  }
  t.T = T / stats.W;

  std::int64_t rises = 0, steps = 0, blocks = 0;
  for (const Segment& s : t.segments) {
    rises += s.rises;
    steps += s.pv_steps;
    blocks += s.blocks;
  }
  // Underflow: one phi per operation. FA1 and splits normalise on the way: there l >= 1 is all that is known.
  double operations = static_cast<double>(rises);
  if (a.contract.algorithm == ATTN_ALG_FA1) operations += 5.0 * static_cast<double>(blocks);
  if (a.contract.algorithm == ATTN_ALG_SPLIT) operations += 5.0 * t.parts + static_cast<double>(blocks);
  const double floors = a.pv_floor(static_cast<std::int64_t>(n), steps) + operations * a.phi;
  const bool deferred = a.contract.algorithm != ATTN_ALG_FA1 && a.contract.algorithm != ATTN_ALG_SPLIT;
  const double sum = deferred ? std::max(1.0, stats.W * (1 - t.T)) : 1.0;
  const double rest = (1 - std::min(0.5, t.sigma)) * std::exp(-2 * a.exp_log);
  // The computed sum is at least 1 in the computed frame, whatever that frame is: its maximum weighs 1 there.
  t.inverse_sum /= 1 - std::min(0.5, t.sigma);
  const double by_true_sum = t.frame / (sum * rest);
  if (by_true_sum < t.inverse_sum) t.inverse_sum = by_true_sum;
  t.floor_error = floors * t.inverse_sum;
}

}  // namespace attest
