// Steps and merges of running states, operation by operation as a Contract says, and their exact counterparts.
#pragma once

#include <vector>

#include "oracle/tests/bound_simulator.h"

namespace attest::bound_test {

// R: the kernel's format; or what the reference is computed in.
template <class R>
struct State {
  R m, l;
  std::vector<R> acc;
};

// exp and log with errors anywhere in what the Contract allows.
template <class R>
class Functions {
 public:
  Functions(const attn_contract& c, std::uint64_t seed) : c_(c), random_(seed), bias_(random_.below(3)) {}
  R exp_of(R z, double eps) {
    if (z == 0) return 1;
    if (z < R(-20000)) return 0;
    return rounded(wide(static_cast<double>(z)), eps);
  }
  R exp2_of(R z, double eps) {
    if (z == 0) return 1;
    if (z < R(-20000)) return 0;
    if (sizeof(R) == 4) return rounded(std::exp2(static_cast<double>(z)), eps);
    return rounded(quad_exp(Quad(z) * (Quad(0x1.62e42fefa39efp-1) + Quad(0x1.abc9e3b39803fp-56))), eps);
  }
  R log_of(R l) {
    const Quad exact = sizeof(R) == 4 ? Quad(std::log(static_cast<double>(l))) : quad_log(Quad(l));
    if (exact == 0) return 0;
    const double size = std::fabs(static_cast<double>(exact));
    const double allowed = std::max(c_.log_absolute, c_.log_relative * size);
    return static_cast<R>(exact + Quad(wobble() * std::max(0.0, allowed - size) * (1 - 1e-6) * u));
  }

 private:
  static constexpr double u = sizeof(R) == 4 ? 0x1p-24 : 0x1p-53;
  static Quad wide(double z) { return sizeof(R) == 4 ? Quad(std::exp(z)) : quad_exp(Quad(z)); }
  double wobble() { return bias_ == 0 ? random_.signed_uniform() : bias_ == 1 ? 1.0 : random_.below(2) ? 1.0 : -1.0; }
  R rounded(Quad exact, double eps) { return static_cast<R>(exact * (1 + Quad(wobble() * half_range(eps) * u))); }
  const attn_contract& c_;
  Random random_;
  std::int64_t bias_;
};

template <class R>
void simulate_step(const attn_contract& c, Functions<R>& f, State<R>& s, const std::vector<R>& scores,
                   const std::vector<std::vector<double>>& v) {
  R m = s.m;
  for (const R x : scores) m = std::max(m, x);
  if (m == -std::numeric_limits<R>::infinity()) return;
  const bool exp2 = c.exp_form == ATTN_EXP2_FMA;
  const R c2 = static_cast<R>(M_LOG2E), frame = m * c2;
  const R factor = exp2 ? f.exp2_of((s.m - m) * c2, c.rescale_exp_error) : f.exp_of(s.m - m, c.rescale_exp_error);
  s.l = s.l * factor;
  for (R& a : s.acc) a = a * factor;
  s.m = m;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == -std::numeric_limits<R>::infinity()) continue;
    const R p = exp2 ? f.exp2_of(std::fma(scores[j], c2, -frame), c.exp_error) : f.exp_of(scores[j] - m, c.exp_error);
    s.l = s.l + p;
    const R q = static_cast<R>(round_to(dtype_of(c.p_dtype), static_cast<double>(p)));
    for (std::size_t e = 0; e < s.acc.size(); ++e) {
      const R value = static_cast<R>(v[j][e]);
      if (c.pv_accumulation == ATTN_ACC_FMA) {
        s.acc[e] = std::fma(q, value, s.acc[e]);
      } else {
        const R product = q * value;
        s.acc[e] = s.acc[e] + product;
      }
    }
  }
}

inline void exact_step(State<Quad>& s, const std::vector<double>& scores, const std::vector<std::vector<double>>& v) {
  Quad m = s.m;
  for (const double x : scores) m = std::max(m, Quad(x));
  if (m == Quad(-HUGE_VAL)) return;
  const Quad factor = s.m == Quad(-HUGE_VAL) ? Quad(0) : quad_exp(s.m - m);
  s.l *= factor;
  for (Quad& a : s.acc) a *= factor;
  s.m = m;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == -HUGE_VAL) continue;
    const Quad p = quad_exp(Quad(scores[j]) - m);
    s.l += p;
    for (std::size_t e = 0; e < s.acc.size(); ++e) s.acc[e] += p * Quad(v[j][e]);
  }
}

// olse: m holds the LSE and acc holds O.
template <class R>
State<R> simulate_merge(const attn_contract& c, Functions<R>& f, StateKind kind, const State<R>& a, const State<R>& b) {
  const R empty = -std::numeric_limits<R>::infinity();
  if (b.m == empty) return a;
  if (a.m == empty) return b;
  State<R> r = a;
  const R m = std::max(a.m, b.m);
  const R wa = f.exp_of(a.m - m, c.exp_error), wb = f.exp_of(b.m - m, c.exp_error);
  if (kind != StateKind::olse) {
    r.m = m;
    const R la = wa * a.l, lb = wb * b.l;
    r.l = la + lb;
    for (std::size_t e = 0; e < r.acc.size(); ++e) {
      const R x = wa * a.acc[e], y = wb * b.acc[e];
      r.acc[e] = x + y;
    }
    return r;
  }
  const R sum = wa + wb;
  r.m = m + f.log_of(sum);
  const bool free = c.split_merge == ATTN_MERGE_DIVISION_FREE;
  const R ua = free ? f.exp_of(a.m - r.m, c.exp_error) : wa, ub = free ? f.exp_of(b.m - r.m, c.exp_error) : wb;
  for (std::size_t e = 0; e < r.acc.size(); ++e) {
    const R x = ua * a.acc[e], y = ub * b.acc[e], o = x + y;
    r.acc[e] = free ? o : o / sum;
  }
  return r;
}

inline State<Quad> exact_merge(StateKind kind, const State<Quad>& a, const State<Quad>& b) {
  if (b.m == Quad(-HUGE_VAL)) return a;
  if (a.m == Quad(-HUGE_VAL)) return b;
  State<Quad> r = a;
  const Quad m = std::max(a.m, b.m), wa = quad_exp(a.m - m), wb = quad_exp(b.m - m);
  const Quad sum = wa + wb;
  r.m = kind == StateKind::olse ? m + quad_log(sum) : m;
  r.l = wa * a.l + wb * b.l;
  for (std::size_t e = 0; e < r.acc.size(); ++e) {
    r.acc[e] = wa * a.acc[e] + wb * b.acc[e];
    if (kind == StateKind::olse) r.acc[e] /= sum;
  }
  return r;
}

}  // namespace attest::bound_test
