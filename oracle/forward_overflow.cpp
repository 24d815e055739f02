// Where a format that the Contract declares may overflow. There the Contract admits anything, so the conditions ask
// whether it can really happen, and not whether a crude bound is large.
#include <algorithm>
#include <cmath>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

// Largest log of an element of P: 0 but for lazy rescaling and the rounded offset of an exp2 frame.
double largest_log_p(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t) {
  double span = 0, rises = 0;
  for (const double gap : stats.gap) span = std::max(span, gap);
  for (const Segment& s : t.segments) rises = std::max(rises, static_cast<double>(s.rises));
  const double lazy = rises > 0 ? std::min(a.lazy, span + 2 * t.delta_max) : 0;
  double magnitude = 0;
  if (a.offset_units > 0) {
    for (const double x : stats.x) magnitude = std::max(magnitude, row.scale * std::fabs(x));
  }
  return lazy + a.exp_log + a.offset_units * a.u * (1 + 4 * a.u) * (magnitude + t.delta_max + lazy);
}

}  // namespace

bool scores_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t) {
  const double g = a.dot_relative(row.d_qk), floor = a.dot_floor(row.d_qk);
  const double underflows = -std::log(a.min_normal) + 60;  // beyond this gap a weight of 0 is right
  for (std::size_t j = 0; j < row.key.size(); ++j) {
    // A partial sum, in any order, lies between the sum of the negative products and that of the positive ones.
    const double partial = 0.5 * (stats.A[j] + std::fabs(stats.x[j])) * (1 + g) + floor;
    if (!(partial < a.overflow)) return true;
    if (!std::isfinite(stats.gap[j])) return true;
    const double scaled = row.scale * std::fabs(stats.x[j]) * (1 + 4 * a.u) + t.delta[j];
    if (a.contract.exp_form == ATTN_EXP_SCALED && !(scaled < a.overflow)) return true;
    if (a.contract.exp_form == ATTN_EXP2_FMA && !(scaled * (M_LOG2E * (1 + 8 * a.u)) < a.overflow)) return true;
    // A difference of -inf gives the weight 0, which is wrong only where a small scale keeps the gap small.
    const double difference = (stats.gap[j] + t.delta[j] + t.delta_max) / row.scale;
    if (!(difference < a.overflow) && stats.gap[j] < underflows) return true;
  }
  return false;
}

bool weights_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t) {
  for (const double tau : t.tau) {
    if (!std::isfinite(tau)) return true;
  }
  const double n = static_cast<double>(row.size());
  if (a.contract.algorithm == ATTN_ALG_SPLIT) {
    // Splits are weighed by their LSE, and any key may be the largest of its split.
    double magnitude = 0;
    for (const double x : stats.x) magnitude = std::max(magnitude, row.scale * std::fabs(x));
    if (!((magnitude + t.delta_max + std::log(n)) * (1 + 8 * a.u) < a.overflow)) return true;
  }
  const double log_p = largest_log_p(a, row, stats, t);
  return !(log_p < std::log(a.p_overflow)) || !(log_p + std::log(n) < std::log(a.overflow));
}

bool lse_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t) {
  const double unit = a.contract.exp_form == ATTN_EXP2_FMA || a.contract.lse_base == ATTN_LSE_BASE_2 ? M_LOG2E : 1;
  const double magnitude = row.scale * std::fabs(stats.m) * (1 + 8 * a.u) + t.delta_max + std::log(stats.W);
  return !(magnitude * unit * (1 + 8 * a.u) < a.overflow);
}

void mark_overflowing_columns(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                              const ForwardTerms& t, const std::vector<double>& value_sum,
                              std::vector<bool>& may_overflow) {
  const std::int64_t n = row.size(), d = row.d_v;
  const double top = std::exp(largest_log_p(a, row, stats, t));
  double alpha = 0;
  for (const double x : t.alpha) alpha = std::max(alpha, x);
  const bool ordered = a.contract.sum_order == ATTN_SUM_SEQUENTIAL && a.contract.algorithm != ATTN_ALG_SPLIT &&
                       a.contract.rescale != ATTN_RESCALE_LAZY;
  const bool one_frame = a.contract.algorithm == ATTN_ALG_STANDARD;
  const std::int64_t block_k = std::max<std::int64_t>(1, plan.block_k);
  for (std::int64_t e = 0; e < d; ++e) {
    if (value_sum[e] * top * (1 + alpha) < a.overflow) continue;
    // Positive and negative parts apart: every partial sum lies between them.
    double sums[2] = {0, 0}, running = HUGE_VAL, worst = 0;
    for (std::int64_t j = 0; j < n;) {
      const std::int64_t block = row.key[j] / block_k, begin = j;
      double frame = running;  // gap of the running maximum; in any other order a key may be its own frame
      for (; j < n && row.key[j] / block_k == block; ++j) frame = std::min(frame, stats.gap[j]);
      if (one_frame) frame = 0;
      double block_frame = HUGE_VAL;
      for (std::int64_t i = begin; i < j; ++i) block_frame = std::min(block_frame, stats.gap[i]);
      const double rescale = running < HUGE_VAL && (ordered || one_frame) ? std::exp(frame - running) : 1;
      double local[2] = {0, 0};
      for (double& s : sums) s *= rescale;
      for (std::int64_t i = begin; i < j; ++i) {
        const double log_p = (ordered || one_frame ? frame - stats.gap[i] : 0.0) + t.tau[i] + t.delta_max;
        const double p = std::min(top, std::exp(log_p)), v = row.v[i][e];
        sums[v < 0] += p * std::fabs(v);
        const double own = std::min(top, std::exp(block_frame - stats.gap[i] + t.tau[i] + t.delta_max));
        local[v < 0] += own * std::fabs(v);
      }
      worst = std::max({worst, sums[0], sums[1]});
      if (a.contract.algorithm == ATTN_ALG_FA1) worst = std::max({worst, local[0], local[1]});
      running = frame;
    }
    may_overflow[e] = !(worst * (1 + alpha) < a.overflow);
  }
}

}  // namespace attest
