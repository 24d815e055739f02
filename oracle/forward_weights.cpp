// Log-weight errors: everything between q.k and the weight that a key enters both sums with.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

constexpr double normal_margin = 0.75;  // natural log units kept from the edge of the normal range

// |s m| that a frame of the segment can have, as seen by key j: the running maximum lies between key and maximum.
double frame_magnitude(const Segment& s, const Row& row, const RowStats& stats, const ForwardTerms& t, std::int64_t j) {
  return std::max(std::fabs(s.scaled_max), row.scale * std::fabs(stats.x[j])) + t.delta_max;
}

// What a split adds to its own log weights: the error of its LSE (the sum l itself cancels between o_b and lse_b), and
// the rounding of its merge weight. Section 2 of the note, "Split-KV".
struct SplitTerms {
  double lse_error;  // common to numerator and denominator
  double weight;     // merge weight exp(fl(lse_b - max)): common only when the merge divides by its own weights
};

SplitTerms split_terms(const Arithmetic& a, const Segment& s, const Row& row, const RowStats& stats,
                       const ForwardTerms& t, std::int64_t j, double tau) {
  double magnitude = std::fabs(s.scaled_max) + t.delta_max, log_sum = s.log_sum, lse = std::fabs(s.lse);
  double below = stats.lse - s.lse;
  if (!t.cuts_known) {  // the worst split that key j can be in
    const double scaled = row.scale * std::fabs(stats.x[j]);
    magnitude = std::max(magnitude, scaled + t.delta_max);
    log_sum = std::log(static_cast<double>(row.size()));
    lse = std::max(lse, scaled);
    below = stats.gap[j] + std::log(stats.W);
  }
  magnitude += a.lazy;
  SplitTerms r;
  const double sum = a.lse_units * a.u * magnitude + a.log_error(log_sum + a.lazy + tau + s.sum);
  r.lse_error = sum + a.u * (lse + sum + tau + s.sum);
  r.weight = a.u * (below + 2 * (r.lse_error + tau + s.sum)) * (1 + 2 * a.u) + a.merge_log + a.phi;
  return r;
}

}  // namespace

void fill_scores(const Arithmetic& a, const Row& row, const RowStats& stats, ForwardTerms& t) {
  const double g = a.dot_relative(row.d_qk), floor = a.dot_floor(row.d_qk);
  const bool scaled = a.contract.exp_form == ATTN_EXP_SCALED;
  t.delta.resize(row.key.size());
  t.delta_max = 0;
  for (std::size_t j = 0; j < row.key.size(); ++j) {
    double delta = row.scale * (g * stats.A[j] + floor);
    if (scaled) delta += (a.u + a.narrowed) * (1 + a.u) * (row.scale * std::fabs(stats.x[j]) + delta) + a.phi;
    t.delta[j] = delta;
    t.delta_max = std::max(t.delta_max, delta);
  }
}

void fill_weights(const Arithmetic& a, const Row& row, const RowStats& stats, ForwardTerms& t) {
  const std::int64_t n = row.size();
  const bool fa1 = a.contract.algorithm == ATTN_ALG_FA1, split = a.contract.algorithm == ATTN_ALG_SPLIT;
  const bool division_free = a.contract.split_merge == ATTN_MERGE_DIVISION_FREE;
  t.tau.resize(n);
  t.tau_lse.resize(n);
  t.floor.assign(n, 0.0);
  t.alpha.resize(n);
  t.p_unit.resize(n);
  t.split_error.assign(n, 0.0);
  t.numerator_only.assign(n, 0.0);
  const double normal_range = -std::log(a.min_normal) - normal_margin;
  double lse_error_max = 0;
  for (const Segment& s : t.segments) {
    // Frames of a block and of the end differ when the maximum rises; FA1 weighs each block by its own maximum.
    const bool moves = s.rises > 0 || (fa1 && s.blocks > 1);
    const double rounding = moves ? std::max(a.element_rounding, a.rescale_rounding) : a.element_rounding;
    const double lazy = moves ? a.lazy : 0;
    const double end_offset = a.offset_units * a.u * (1 + 4 * a.u) * (std::fabs(s.scaled_max) + t.delta_max + lazy);
    t.log_frame = std::max(t.log_frame, t.delta_max + end_offset);
    t.frame = std::exp(t.log_frame);
    t.inverse_sum = std::max(t.inverse_sum, std::exp(2 * end_offset + 2 * a.exp_log));
    for (std::int64_t j = s.begin; j < s.end; ++j) {
      const double to_max = t.cuts_known ? stats.gap[j] - s.max_gap : stats.gap[j];
      // Element and rescale arguments telescope: together they round the gap once each way, and what a stale maximum
      // of lazy rescaling lies above or below.
      const double gap = to_max + t.delta[j] + t.delta_max + 2 * lazy;
      const double offset = a.offset_units * a.u * (1 + 4 * a.u) * (frame_magnitude(s, row, stats, t, j) + lazy);
      const double rescales = t.rises_after[j] + (fa1 && s.blocks > 1 ? 1 : 0);
      double tau = t.delta[j] + (a.gap_error + rounding * a.u) * (1 + 4 * a.u) * gap;
      tau += 2 * a.u * offset + (moves ? offset + end_offset : 0) + (rescales + 2) * a.phi;
      tau += a.exp_log + rescales * a.rescale_log;
      t.alpha[j] = s.pv;
      t.tau_lse[j] = 0;
      if (split) {
        const SplitTerms e = split_terms(a, s, row, stats, t, j, tau);
        tau += e.lse_error;
        lse_error_max = std::max(lse_error_max, e.lse_error + tau);
        t.split_error[j] = e.lse_error;
        if (division_free) {
          t.numerator_only[j] = (1 + s.pv) * std::expm1(e.weight);
          t.alpha[j] += t.numerator_only[j];
          t.tau_lse[j] = e.weight;
        } else {
          tau += e.weight;
          t.split_error[j] += e.weight;
        }
        t.merge_lse += e.weight * stats.w[j] / stats.W;
      }
      t.tau[j] = tau;
      // 1 is a number of every format: rounding moves an element of P by no more than its distance from 1, which is
      // at most its gap and the errors, in whatever frame. A key at the maximum loses nothing.
      t.p_unit[j] = lazy > 0 ? a.p_u : std::min(a.p_u, std::expm1(std::min(gap + tau + offset + end_offset, 1.0)));
      t.tau_lse[j] += tau;
      // Below the normal range an exp has an absolute error; element and rescale can both be there.
      const double to_end = stats.gap[j] + tau + t.delta_max + end_offset;
      if (to_end > normal_range) t.floor[j] = 2 * a.exp_floor;
    }
  }
  if (split && division_free) {
    // exp(-lse) replaces the division by the sum: the error of lse = max + log sum exp(lse_b - max) multiplies O.
    const double parts = t.parts, log_parts = std::log(parts);
    const double sum = (parts + log_parts + 2) * a.u * (1 + 2 * parts * a.u) + a.merge_log +
                       a.log_error(log_parts + 2 * lse_error_max) + 2 * a.u * lse_error_max;
    t.merge = std::expm1(sum + a.u * (std::fabs(stats.lse) + sum + lse_error_max));
  }
}

}  // namespace attest
