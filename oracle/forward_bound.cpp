// Bound of one query row: what section 2 and 5 of the numerics note derive, assembled. See oracle/BOUNDS.md.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/forward_terms.h"

namespace attest {
namespace {

constexpr double linear_limit = 0.02;  // weight error above which the box form is worth its passes

enum class Scores { finite, nan, infinite };

// Rows whose scores are no numbers have no bound: a NaN is compared by class (bound 0), an infinite score admits
// anything, since inf - inf depends on where the maximum stood.
Scores classify(const Row& row) {
  Scores kind = Scores::finite;
  for (std::int64_t j = 0; j < row.size(); ++j) {
    double magnitude = 0;  // not the score: inf - inf of finite inputs is an overflow, and no NaN that anyone put there
    for (std::int64_t i = 0; i < row.d_qk; ++i) magnitude += std::fabs(row.q[i] * row.k[j][i]);
    if (std::isnan(magnitude)) return Scores::nan;
    if (!(row.scale * magnitude < HUGE_VAL)) kind = Scores::infinite;
  }
  return kind;
}

void admit_anything(RowBound& bound) {
  for (ElementBound& b : bound.o) b.deterministic = b.before_rounding = HUGE_VAL;
  bound.lse.deterministic = bound.lse.before_rounding = HUGE_VAL;
}

// Everything that no column enters; false where scores or weights may overflow: then anything is admitted.
bool fill_terms(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats, ForwardTerms& t) {
  fill_scores(a, row, stats, t);
  if (scores_may_overflow(a, row, stats, t)) return false;
  t.segments = make_segments(a, plan, row, stats, t);
  fill_sums(a, plan, row, t);
  fill_weights(a, row, stats, t);
  if (weights_may_overflow(a, row, stats, t)) return false;
  fill_accumulation(a, stats, t);
  return true;
}

// Merge, division, output rounding; the allowance is for the rounding of the bound's own evaluation.
void finish(const Arithmetic& a, const ForwardTerms& t, DType out, double o, double allowance, double before,
            ElementBound& b) {
  const double magnitude = std::fabs(o);
  before += t.merge * (magnitude + before);
  before += t.division * (magnitude + before) + a.phi;
  before = before * allowance + std::numeric_limits<double>::denorm_min();
  b.before_rounding = b.deterministic = before;
  if (!(magnitude + before < overflow_threshold(out))) {
    b.deterministic = HUGE_VAL;
  } else if (attn_dtype_of(out) != a.contract.acc_dtype) {
    b.half_ulp = output_rounding(a.contract, out, (magnitude + before) * (1 + 0x1p-40));
    b.deterministic = (before + b.half_ulp) * (1 + 0x1p-52);
  }
}

// Values that are not finite, in a row whose scores are: their columns are compared by class, the others as if the
// values were 0. An infinite value times a weight that may have underflowed is NaN in one kernel and infinite in
// another: that column admits anything.
RowBound bound_around_non_finite(const attn_contract& contract, const KeyPlan& plan, const Row& row, DType out,
                                 bool expected) {
  std::vector<double> values(static_cast<std::size_t>(row.size() * row.d_v));
  Row clean = row;
  for (std::int64_t j = 0; j < row.size(); ++j) {
    double* v = values.data() + j * row.d_v;
    for (std::int64_t e = 0; e < row.d_v; ++e) v[e] = std::isfinite(row.v[j][e]) ? row.v[j][e] : 0;
    clean.v[j] = v;
  }
  const RowStats stats = row_stats(clean);
  if (!stats.finite) {
    RowBound all;
    all.o.resize(row.d_v);
    admit_anything(all);
    return all;
  }
  RowBound bound = forward_bound(contract, plan, clean, stats, out, expected);
  const Arithmetic a(contract, row.scale);
  ForwardTerms t;
  if (!fill_terms(a, plan, clean, stats, t)) return bound;  // anything is admitted already
  const double smallest = 4 * std::max(a.exp_floor, 2 * a.p_floor);
  for (std::int64_t e = 0; e < row.d_v; ++e) {
    bool finite = true, nan = false, uncertain = false;
    for (std::int64_t j = 0; j < row.size(); ++j) {
      const double v = row.v[j][e];
      finite = finite && std::isfinite(v);
      nan = nan || std::isnan(v);
      uncertain = uncertain || (std::isinf(v) && !(std::exp(-stats.gap[j] - t.tau[j]) > smallest));
    }
    if (finite) continue;
    // The finite values of the column may overflow on their own, and then meet the infinity.
    if (bound.o[e].deterministic == HUGE_VAL && !nan) continue;
    bound.o[e] = ElementBound{};
    if (uncertain && !nan) bound.o[e].deterministic = bound.o[e].before_rounding = HUGE_VAL;
  }
  return bound;
}

}  // namespace

RowBound forward_bound(const attn_contract& contract, const KeyPlan& plan, const Row& row, const RowStats& stats,
                       DType out, bool expected) {
  RowBound bound;
  bound.o.resize(row.d_v);
  if (row.size() == 0) return bound;  // O = 0 and LSE = -inf, exactly
  if (!stats.finite) {
    const Scores scores = classify(row);
    if (scores == Scores::finite) return bound_around_non_finite(contract, plan, row, out, expected);
    if (scores == Scores::infinite) admit_anything(bound);
    return bound;
  }
  const Arithmetic a(contract, row.scale);
  ForwardTerms t;
  if (!fill_terms(a, plan, row, stats, t)) {
    admit_anything(bound);
    return bound;
  }
  bound.weight_error = t.T;
  bound.log_error = *std::max_element(t.tau.begin(), t.tau.end()) + t.log_frame;

  // Sums of the bound itself, and the weights of row_stats: a gap of at most 745 that counts, good to 2^-53 of itself.
  const double allowance = 1 + static_cast<double>(row.size() + row.d_qk + 1500) * 0x1p-52;
  const ColumnSums sums = sum_columns(row, stats, t);
  std::vector<bool> overflowing(row.d_v, false);
  mark_overflowing_columns(a, plan, row, stats, t, sums.value_sum, overflowing);
  const bool boxed = !(t.T <= linear_limit);  // so that a NaN takes the safe way
  BoxBound box;
  if (boxed) box = box_bound(a, row, stats, t);
  for (std::int64_t e = 0; e < row.d_v; ++e) {
    ElementBound& b = bound.o[e];
    if (overflowing[e]) {
      b.deterministic = b.before_rounding = HUGE_VAL;
      continue;
    }
    double before = linear_bound(t, sums, e, stats.o[e]);
    if (boxed) {
      before = before < box.bound[e] ? before : box.bound[e];
      const double hull = std::max(sums.high[e] - stats.o[e], stats.o[e] - sums.low[e]);
      b.ill_conditioned = hull > 0 && box.half_width[e] >= 0.5 * hull;
    }
    finish(a, t, out, stats.o[e], allowance, before, b);
  }
  bound.lse.deterministic = lse_may_overflow(a, row, stats, t) ? HUGE_VAL : lse_bound(a, stats, t) * allowance;
  bound.lse.before_rounding = bound.lse.deterministic;
  bound.lse.ill_conditioned = !(t.T < 1);
  if (expected) bound.expected_valid = expected_tier(a, plan, row, stats, t, bound);
  return bound;
}

}  // namespace attest
