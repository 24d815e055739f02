// The expected tier: |error| <= lambda spread + drift with probability 1 - 2 exp(-lambda^2 / 2) per element, for values
// that were not searched for. Roundings are independent and centred between groups, equal within one; everything that
// is known to be biased is in the drift. Numerics note, section 2 "Expected tier" with W1 to W3 of section 5.
#include <algorithm>
#include <cmath>

#include "oracle/expected_terms.h"

namespace attest {
namespace {

constexpr double largest_weight_error = 0.25;  // beyond it first order says nothing: the deterministic tier stands

struct KeySpreads {
  std::vector<double> score;     // of the score, over W, relative to the weight
  std::vector<double> element;   // of the exp and its argument
  std::vector<double> rounding;  // of P
  std::vector<double> drift;     // deterministic part of the log weight
};

// Deterministic truncation of tensor cores drifts every score toward zero: coherent products by up to d 2^-F.
double truncation_drift(const Arithmetic& a, const Row& row, const RowStats& stats, std::int64_t j, std::int64_t top) {
  if (a.contract.qk_accumulation != ATTN_ACC_TENSOR_CORE) return 0;
  const auto coherence = [&](std::int64_t i) {
    return stats.A[i] > 0 ? std::min(1.0, std::fabs(stats.x[i]) / stats.A[i]) : 0.0;
  };
  const std::int64_t terms = std::max(1, a.contract.mma_terms);
  const double steps = static_cast<double>((row.d_qk + terms - 1) / terms);
  return std::max(coherence(j), coherence(top)) * static_cast<double>(row.d_qk) *
             std::ldexp(1.0, -a.contract.mma_fraction_bits) +
         steps * 2 * a.u;
}

// Root mean square allowance of a raw score. Every partial sum of every order is at most (A + |x|) / 2.
double score_spread(const Arithmetic& a, const Row& row, const RowStats& stats, std::int64_t j) {
  const double partial = 0.5 * (stats.A[j] + std::fabs(stats.x[j])), d = static_cast<double>(row.d_qk);
  if (a.contract.qk_accumulation == ATTN_ACC_TENSOR_CORE) {
    const std::int64_t terms = std::max(1, a.contract.mma_terms);
    const double steps = static_cast<double>((row.d_qk + terms - 1) / terms);
    const double align = std::ldexp(1.0, -a.contract.mma_fraction_bits);
    return partial * std::sqrt(steps * (static_cast<double>(terms) * align * align + 4 * a.u * a.u));
  }
  const double products = a.contract.qk_accumulation == ATTN_ACC_FMA ? 0 : stats.A[j];
  return a.u * std::sqrt(d * partial * partial + products * products);
}

std::int64_t argmax(const RowStats& stats) {
  return std::min_element(stats.gap.begin(), stats.gap.end()) - stats.gap.begin();
}

KeySpreads key_spreads(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t,
                       const Frames& f) {
  const std::int64_t n = row.size(), top = argmax(stats);
  const bool fa1 = a.contract.algorithm == ATTN_ALG_FA1, split = a.contract.algorithm == ATTN_ALG_SPLIT;
  const double eps = std::expm1(a.exp_log);
  KeySpreads k;
  for (auto* v : {&k.score, &k.element, &k.rounding, &k.drift}) v->resize(n);
  for (const Segment& s : t.segments) {
    const bool moves = s.rises > 0 || (fa1 && s.blocks > 1);
    for (std::int64_t j = s.begin; j < s.end; ++j) {
      const double pi = stats.w[j] / stats.W, local = std::fabs(f.local_gap[j]) + t.delta[j] + t.delta_max;
      const double floor = row.scale * a.dot_floor(row.d_qk);
      double scaling = 0;
      if (a.contract.exp_form == ATTN_EXP_SCALED) scaling = a.u * (row.scale * std::fabs(stats.x[j]) + t.delta[j]);
      k.score[j] = pi * std::hypot(row.scale * score_spread(a, row, stats, j), scaling);
      k.element[j] = pi * std::hypot(a.element_rounding * a.u * local, eps);
      k.rounding[j] = t.rho[j] / stats.W;
      const double to_end = f.frame[j] - s.max_gap + 2 * (t.delta_max + a.lazy);
      const double magnitude =
          std::max(std::fabs(s.scaled_max), row.scale * std::fabs(stats.x[j])) + t.delta_max + a.lazy;
      const double offsets = a.offset_units * a.u * (moves ? 2 * magnitude : 0) * (1 + 4 * a.u);
      double drift = floor + a.gap_error * (stats.gap[j] - s.max_gap + t.delta[j] + t.delta_max) + offsets;
      if (moves) drift += a.rescale_rounding * a.u * to_end;
      if (a.narrowed > 0 && a.contract.exp_form == ATTN_EXP_SCALED) drift += a.u * row.scale * std::fabs(stats.x[j]);
      drift += (t.rises_after[j] + (fa1 && s.blocks > 1 ? 1 : 0)) * a.rescale_log + 2 * a.phi;
      drift += truncation_drift(a, row, stats, j, top) * stats.gap[j];
      if (split) drift += t.split_error[j];
      k.drift[j] = drift;
    }
  }
  return k;
}

// Exp errors may share one bias. It cancels in O but for the elements where exp(0) = 1 has none.
std::vector<double> exact_elements(const Arithmetic& a, const RowStats& stats, const Frames& f) {
  std::vector<double> share(f.frame.size(), 0.0);
  for (std::size_t j = 0; j < share.size(); ++j) {
    if (f.local_gap[j] == 0) share[j] = std::expm1(a.exp_log) * stats.w[j] / stats.W;
  }
  return share;
}

}  // namespace

bool expected_tier(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                   const ForwardTerms& t, RowBound& bound) {
  const bool tensor_core = a.contract.pv_accumulation == ATTN_ACC_TENSOR_CORE;
  const bool ordered = a.contract.sum_order == ATTN_SUM_SEQUENTIAL;
  if (!(ordered || tensor_core) || !t.cuts_known || !stats.finite || !(t.T < largest_weight_error)) return false;
  const bool fa1 = a.contract.algorithm == ATTN_ALG_FA1;
  const std::int64_t n = row.size(), d = row.d_v;
  std::vector<double> square(d, 0.0), lse_square(1, 0.0), drift(d, 0.0);
  const double width = 2 * std::max(a.p_u, a.u) / group_width;
  const Frames f = walk(a, plan, row, stats, t, false);
  const KeySpreads k = key_spreads(a, row, stats, t, f);

  add_grouped(k.score, stats.gap, width, Factor::deviation, row, stats, square);
  add_grouped(k.score, stats.gap, width, Factor::one, row, stats, lse_square);
  std::vector<double> local(d, 0.0);
  // W2: errors of exp and of P repeat with the gap to the running maximum; FA1 has two ways to choose that.
  for (int own = 0; own <= (fa1 ? 1 : 0); ++own) {
    const Frames g = own ? walk(a, plan, row, stats, t, true) : f;
    std::vector<double> here(d, 0.0), lse_here(1, 0.0);
    add_grouped(k.element, g.local_gap, width, Factor::deviation, row, stats, here);
    add_grouped(k.rounding, g.local_gap, width, Factor::value, row, stats, here);
    if (own == 0) add_grouped(k.element, g.local_gap, width, Factor::one, row, stats, lse_square);
    for (std::int64_t e = 0; e < d; ++e) local[e] = std::max(local[e], here[e]);
  }

  CellSums cells(static_cast<std::size_t>(n));
  const bool separate = a.contract.pv_accumulation == ATTN_ACC_MUL_ADD;
  double sum_square = 0, sum_drift = ordered ? 0 : t.sigma;
  Frames continued = f;
  for (std::int64_t j = 1; fa1 && j < n; ++j) continued.restarts[j] = false;
  std::int64_t blocks = 0;
  for (const Segment& s : t.segments) blocks += s.blocks;
  double alpha = 0;
  for (const double x : t.alpha) alpha = std::max(alpha, x);
  if (fa1) sum_drift += gamma_of(3 * static_cast<double>(blocks) * a.u);
  const bool split = a.contract.algorithm == ATTN_ALG_SPLIT;
  if (split) sum_drift += gamma_of(t.parts * a.u);

  // FA1 may sum each block from zero, or go on from O l: the worse of the two.
  const auto accumulate = [&](std::int64_t e, bool split_products) {
    const double* const* values = e < 0 ? nullptr : row.v.data();
    Accumulation r = cells.accumulate(a, stats, f, values, std::max<std::int64_t>(e, 0), split_products);
    if (!fa1) return r;
    const Accumulation other =
        cells.accumulate(a, stats, continued, values, std::max<std::int64_t>(e, 0), split_products);
    r.square = std::max(r.square, other.square);
    r.block_ends = std::max(r.block_ends, other.block_ends);
    r.largest_partial = std::max(r.largest_partial, other.largest_partial);
    return r;
  };
  if (ordered) sum_square = accumulate(-1, false).square;
  const std::vector<double> exact = exact_elements(a, stats, f);
  for (std::int64_t j = 0; j < n; ++j) {
    const double common = k.drift[j] * stats.w[j] / stats.W + exact[j] + t.true_floor(j) / stats.W;
    const double own = t.numerator_only[j] * stats.w[j] / stats.W;
    for (std::int64_t e = 0; e < d; ++e) {
      drift[e] += common * std::fabs(row.v[j][e] - stats.o[e]) + own * std::fabs(row.v[j][e]);
    }
  }
  const double denominator = (1 - t.T) * (1 - t.sigma);
  for (std::int64_t e = 0; e < d; ++e) {
    const double o = std::fabs(stats.o[e]);
    const Accumulation acc = accumulate(e, separate && !tensor_core);
    double S2 = square[e] + local[e] + o * o * sum_square, C = drift[e] + sum_drift * o;
    if (tensor_core) {
      C += alpha * (acc.largest_partial + acc.largest_term);  // truncation is biased: in full, on the largest sum
    } else {
      S2 += acc.square;
    }
    if (fa1) C += (4 * a.u + a.division) * 2 * acc.block_ends;
    if (split) C += ((t.parts + 1) * a.u + a.division) * acc.block_ends;
    C += (t.merge + t.division) * (o + bound.o[e].before_rounding);
    const double floors = t.floor_error + 2 * a.phi;  // W3
    bound.o[e].spread = std::sqrt(S2) / denominator;
    bound.o[e].drift = C / denominator + floors;
  }

  // LSE: a bias of exp does not cancel, so eps_e is in the drift as well.
  double C = std::expm1(a.exp_log) + sum_drift;
  double scaled_max = 0, drift_of_max = 0;
  for (const Segment& s : t.segments) scaled_max = std::max(scaled_max, std::fabs(s.scaled_max));
  for (std::int64_t j = 0; j < n; ++j) C += (k.drift[j] * stats.w[j] + t.true_floor(j)) / stats.W;
  drift_of_max = truncation_drift(a, row, stats, argmax(stats), argmax(stats)) * row.scale * std::fabs(stats.m);
  C += drift_of_max;
  if (split) {
    C += t.merge_lse + a.log_error(std::log(t.parts) + t.T);
  } else {
    C += a.lse_units * a.u * (scaled_max + t.delta_max + a.lazy) +
         a.log_error(std::log(stats.W) + t.T + t.sigma + a.lazy);
  }
  C += a.u * (std::fabs(stats.lse) + C);
  if (a.contract.lse_base == ATTN_LSE_BASE_2) C += (2 * a.u + 0x1p-51) * (std::fabs(stats.lse) + C);
  bound.lse.spread = std::sqrt(lse_square[0] + sum_square) / denominator;
  bound.lse.drift = C / denominator + a.phi;
  return true;
}

double expected_bound(const ElementBound& b, double truth, double lambda) {
  (void)truth;  // the output rounding was taken at |truth| + the larger bound already
  const double statistical = lambda * b.spread + b.drift;
  // Where the tier says nothing (nothing filled in, or no number), the deterministic bound stands.
  const bool usable = statistical > 0 && statistical < b.before_rounding;
  if (b.deterministic == HUGE_VAL || !usable) return b.deterministic;
  return (statistical + b.half_ulp) * (1 + 0x1p-50);
}

}  // namespace attest
