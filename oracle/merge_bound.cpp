// Bounds of merging two states that carry errors of their own; trees of merges recurse. Derived in oracle/BOUNDS.md.
#include <algorithm>
#include <cmath>

#include "oracle/arithmetic.h"

namespace attest {
namespace {

constexpr double evaluation = 1 + 0x1p-46;  // allowance for the rounding of the bound itself
constexpr double resolution = 0x1p-1073;    // and for that of a subnormal truth, which is held in doubles

bool is_empty(const MergeSide& s) { return s.m == -HUGE_VAL; }

// Roundings of a weight's argument, in u of the gap: the difference, and with exp2 its product with a rounded log2 e.
double argument_roundings(const Arithmetic& a) { return a.contract.exp_form == ATTN_EXP2_FMA ? 3 : 1; }

// Weight exp(m_b - m) of one side: exactly 1 at the maximum.
struct SideWeight {
  double factor = 1;
  double k = 0;     // relative error of weight and product together
  double lost = 0;  // absolute error of the weight below the normal range
  double phi = 0;   // of the product
  double scale(double value, double error) const {
    if (value + error == 0) return 0;
    return factor * (error + k * (value + error)) + lost * (value + error) + phi;
  }
};

SideWeight side_weight(const Arithmetic& a, double gap) {
  SideWeight w;
  if (gap == 0) return w;
  w.factor = std::exp(-gap);
  w.k = compound(std::expm1(argument_roundings(a) * a.u * gap * (1 + 4 * a.u) + a.merge_log + a.phi), a.u);
  if (!std::isfinite(w.k)) w.k = w.factor = 0;  // only where the factor is far below the smallest number
  w.lost = gap > -std::log(a.min_normal) - 0.75 ? a.exp_floor : 0;
  w.phi = a.phi;
  return w;
}

// (m, l) and (m, l, acc): l = a1 l1 + a2 l2 with products and sum rounded apart (an FMA rounds less).
StateBound merge_sums(const Arithmetic& a, const MergeSide& x, const MergeSide& y) {
  const double m = std::max(x.m, y.m);
  const SideWeight wx = side_weight(a, m - x.m), wy = side_weight(a, m - y.m);
  const auto sum = [&](double p, double p_error, double q, double q_error) {
    if (std::isnan(p) || std::isnan(q)) return 0.0;
    const double error = wx.scale(std::fabs(p), p_error) + wy.scale(std::fabs(q), q_error);
    const double value = std::fabs(wx.factor * p + wy.factor * q);
    const double total = error + a.u * (value + error);
    return value + total < a.overflow ? total * evaluation + resolution : HUGE_VAL;
  };
  StateBound r;
  r.l = sum(x.l, x.error.l, y.l, y.error.l);
  r.ill_conditioned = x.error.ill_conditioned || y.error.ill_conditioned;
  if (x.kind == StateKind::ml) return r;
  for (std::size_t e = 0; e < x.acc.size(); ++e) {
    r.acc.push_back(sum(x.acc[e], x.error.acc[e], y.acc[e], y.error.acc[e]));
  }
  return r;
}

// (O, LSE): w_b = exp(lse_b - max), l = w_1 + w_2, O = (w_1 o_1 + w_2 o_2) / l, LSE = max + log l; division-free:
// weights exp(lse_b - LSE) and no division. Section 5 of the note, with the Contract's constants.
StateBound merge_normalised(const Arithmetic& a, const MergeSide& x, const MergeSide& y) {
  const bool division_free = a.contract.split_merge == ATTN_MERGE_DIVISION_FREE;
  const double gap = std::fabs(x.m - y.m), top = std::max(x.m, y.m);
  const double log_sum = std::log1p(std::exp(-gap)), lambda = top + log_sum;
  // Weights from the gap: from x.m - lambda they would carry the cancelled digits of a large LSE.
  const double w_max = 1 / (1 + std::exp(-gap)), w_min = std::exp(-gap) / (1 + std::exp(-gap));
  const double wx = x.m >= y.m ? w_max : w_min, wy = x.m >= y.m ? w_min : w_max;
  const double ex = x.error.m, ey = y.error.m, inputs = ex + ey;

  const double kappa = argument_roundings(a) * a.u * (gap + inputs) * (1 + 2 * a.u) + a.merge_log + a.phi;
  const double delta = inputs + (division_free ? 0 : kappa);
  // Exact extremum of the weight when its log ratio is off by delta; never vacuous, also for an infinite delta.
  const double grow = std::expm1(delta);
  double shift = std::isfinite(grow) ? wx * wy * grow / (1 + w_min * grow) : 1;
  const bool subnormal = gap + inputs + kappa > -std::log(a.min_normal) - 0.75;
  const double lost = subnormal ? 2 * a.exp_floor : 0;
  if (!division_free) shift = std::min(1.0, shift + lost);

  StateBound r;
  // LSE: the smaller weight's error, the sum, the log, the last sum; Z is what a division-free O inherits.
  const double w_star = std::min(1.0, w_min * std::exp(inputs));
  const double smaller = w_star * std::expm1(kappa) + lost;
  const double of_weight = smaller < 0.5 ? std::min(-std::log1p(-smaller), kappa + lost) : kappa + lost;
  const double largest_ratio = std::min(1.0, std::exp(inputs - gap)) * std::exp(std::min(kappa, 1.0));
  const double z0 = of_weight - std::log1p(-a.u) + a.log_error(std::log1p(largest_ratio) + a.u);
  const double spread = std::max(std::log1p(wx * std::expm1(ex) + wy * std::expm1(ey)),
                                 -std::log1p(wx * std::expm1(-ex) + wy * std::expm1(-ey)));
  const double input_error = std::min(std::isnan(spread) ? HUGE_VAL : spread, std::max(ex, ey));
  const double last = a.u * (std::fabs(lambda) + input_error + z0) * (1 + 2 * a.u);
  r.m = (input_error + z0 + last) * evaluation + a.phi;
  if (!(std::fabs(lambda) + r.m < a.overflow)) r.m = HUGE_VAL;
  const double z = z0 + last;

  r.ill_conditioned = !(delta < 1) || x.error.ill_conditioned || y.error.ill_conditioned;
  const double share_x = std::min(1.0, wx + shift), share_y = std::min(1.0, wy + shift);
  const double kx =
      argument_roundings(a) * a.u * (std::fabs(x.m - lambda) + ex + r.m) * (1 + 2 * a.u) + a.merge_log + a.phi;
  const double ky =
      argument_roundings(a) * a.u * (std::fabs(y.m - lambda) + ey + r.m) * (1 + 2 * a.u) + a.merge_log + a.phi;
  // w_x p + w_y q before the division: the side with the larger LSE weighs 1.
  const auto undivided = [&](double p, double q) {
    const double small = std::exp(-gap);
    return x.m >= y.m ? std::fabs(p) + small * std::fabs(q) : small * std::fabs(p) + std::fabs(q);
  };
  for (std::size_t e = 0; e < x.acc.size(); ++e) {
    const double p = x.acc[e], q = y.acc[e], dp = x.error.acc[e], dq = y.error.acc[e];
    if (std::isnan(p) || std::isnan(q)) {
      r.acc.push_back(0);
      continue;
    }
    const double magnitude = std::fabs(wx * p + wy * q);
    double error = shift * std::fabs(p - q) + share_x * dp + share_y * dq;
    const double part_x = share_x * (std::fabs(p) + dp), part_y = share_y * (std::fabs(q) + dq);
    if (division_free) {
      error += std::expm1(kx + 2 * a.u + z) * part_x + std::expm1(ky + 2 * a.u + z) * part_y + 3 * a.phi;
      error += lost * std::max(std::fabs(p) + dp, std::fabs(q) + dq);
    } else {
      error += compound(a.u, a.u) * (part_x + part_y);
      error += compound(a.division, gamma_of(a.u)) * (magnitude + error) + 4 * a.phi;
    }
    // Before the division a sum can be twice as large as O.
    const bool fits = magnitude + error < a.overflow &&
                      (division_free || part_x + part_y < 0.5 * a.overflow || undivided(p, q) + error < a.overflow);
    r.acc.push_back(fits && !std::isnan(error) ? error * evaluation + resolution : HUGE_VAL);
  }
  return r;
}

}  // namespace

StateBound merge_bound(const attn_contract& contract, const MergeSide& a, const MergeSide& b) {
  const Arithmetic arithmetic(contract);
  StateBound copy;
  if (is_empty(a) || is_empty(b)) {
    // The empty state is the identity, bit for bit; two of them give the empty state, exactly.
    copy = is_empty(a) ? b.error : a.error;
    if (is_empty(a) && is_empty(b)) copy = StateBound{};
    copy.acc.resize(a.kind == StateKind::ml ? 0 : std::max(a.acc.size(), b.acc.size()), 0.0);
    return copy;
  }
  if (std::isnan(a.m) || std::isnan(b.m) || a.m == HUGE_VAL || b.m == HUGE_VAL) {
    copy.acc.resize(a.kind == StateKind::ml ? 0 : a.acc.size(), 0.0);  // compared by class
    return copy;
  }
  return a.kind == StateKind::olse ? merge_normalised(arithmetic, a, b) : merge_sums(arithmetic, a, b);
}

}  // namespace attest
