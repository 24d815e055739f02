// Bit-level simulation of the kernels that a Contract can describe, for the tests of bounds: every operation rounded as
// the Contract says, exp, log and division with errors anywhere in what it allows. Not the kernels of impl/.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/tests/bound_kernel.h"
#include "oracle/tests/bound_random.h"
#include "oracle/tests/bound_reference.h"

namespace attest::bound_test {

template <class R>
class Simulator {
 public:
  Simulator(const SimulatedKernel& setup, const RowValues& x, Errors errors, std::uint64_t seed)
      : s_(setup), c_(setup.contract), x_(x), errors_(errors), random_(seed) {
    scale_ = static_cast<R>(x.scale);
    c2_ = scale_ * static_cast<R>(M_LOG2E);
  }

  Output run() {
    if (c_.flushes_subnormals) _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    scores();
    Output out;
    std::vector<R> o;
    R lse = 0;
    if (c_.algorithm == ATTN_ALG_SPLIT) {
      split(o, lse);
    } else {
      part(0, x_.n, 0, o, lse);
    }
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_OFF);
    for (const R v : o) out.o.push_back(round_to(s_.out, static_cast<double>(v)));
    out.lse = static_cast<double>(lse);
    return out;
  }

 private:
  static constexpr double u = sizeof(R) == 4 ? 0x1p-24 : 0x1p-53;

  double wobble() {
    switch (errors_) {
      case Errors::none:
        return 0;
      case Errors::random:
        return random_.signed_uniform();
      case Errors::extreme:
        return random_.below(2) ? 1 : -1;
      case Errors::low:
        return -1;
      case Errors::high:
        return 1;
    }
    return 0;
  }
  // The value of f to more than R, then an error that leaves room for the last rounding.
  R perturbed(Quad exact, double eps_in_u) {
    if (sizeof(R) == 4) {
      const double d = static_cast<double>(exact) * (1 + wobble() * half_range(eps_in_u) * u);
      if (c_.flushes_subnormals && std::fabs(d) < 0x1p-126) return 0;
      return static_cast<R>(d);
    }
    return static_cast<R>(exact * (1 + Quad(wobble() * half_range(eps_in_u) * u)));
  }
  Quad wide_exp(double z) { return sizeof(R) == 4 ? Quad(std::exp(z)) : quad_exp(Quad(z)); }
  Quad wide_exp2(double z) {
    return sizeof(R) == 4 ? Quad(std::exp2(z))
                          : quad_exp(Quad(z) * (Quad(0x1.62e42fefa39efp-1) + Quad(0x1.abc9e3b39803fp-56)));
  }
  R exp_of(R z, double eps) {
    if (z == 0) return 1;
    if (z < R(-20000)) return 0;
    return perturbed(wide_exp(static_cast<double>(z)), eps);
  }
  R exp2_of(R z, double eps) {
    if (z == 0) return 1;
    if (z < R(-20000)) return 0;
    return perturbed(wide_exp2(static_cast<double>(z)), eps);
  }
  R log_of(R l) {
    const Quad exact = sizeof(R) == 4 ? Quad(std::log(static_cast<double>(l))) : quad_log(Quad(l));
    if (exact == 0) return 0;
    const double size = std::fabs(static_cast<double>(exact));
    const double allowed = std::max(c_.log_absolute, c_.log_relative * size);
    return static_cast<R>(exact + Quad(wobble() * std::max(0.0, allowed - size) * (1 - 1e-6) * u));
  }
  R divide(R a, R l) {
    if (c_.division_error >= 2) return a * static_cast<R>(Quad(1) / Quad(l));
    return a / l;
  }

  R element(R x, R m) {
    switch (c_.exp_form) {
      case ATTN_EXP_SCALED:
        return exp_of(x - m, c_.exp_error);
      case ATTN_EXP2_FMA:
        return exp2_of(std::fma(x, c2_, -(m * c2_)), c_.exp_error);
      default:
        return exp_of((x - m) * scale_, c_.exp_error);
    }
  }
  R rescale(R old_m, R m) {
    switch (c_.exp_form) {
      case ATTN_EXP_SCALED:
        return exp_of(old_m - m, c_.rescale_exp_error);
      case ATTN_EXP2_FMA:
        return exp2_of((old_m - m) * c2_, c_.rescale_exp_error);
      default:
        return exp_of((old_m - m) * scale_, c_.rescale_exp_error);
    }
  }
  R rise_in_log2(R old_m, R m) {
    return (m - old_m) * (c_.exp_form == ATTN_EXP_SCALED ? static_cast<R>(M_LOG2E) : c2_);
  }
  R lse_of(R m, R l) {
    switch (c_.exp_form) {
      case ATTN_EXP_SCALED:
        return m + log_of(l);
      case ATTN_EXP2_FMA: {
        const R back = c2_ * static_cast<R>(M_LN2), high = m * back;
        return high + log_of(l);
      }
      default:
        return m * scale_ + log_of(l);
    }
  }

  // One tensor-core step: products and c aligned to 2^(emax - F), truncated, summed, truncated to 24 bits.
  R tensor_step(R c, const R* a, std::int64_t a_stride, const double* b, std::int64_t b_stride, std::int64_t n) {
    int emax = -100000;
    if (c != 0) emax = std::max(exponent_of(static_cast<double>(c)), -126);
    double t[64];
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(a[i * a_stride]), y = b[i * b_stride];
      t[i] = x * y;
      if (t[i] != 0) emax = std::max(emax, exponent_of(x) + exponent_of(y));
    }
    if (emax == -100000) return 0;
    emax = std::max(emax, c_.mma_terms == 8 ? -126 : -133);
    const double up = std::ldexp(1.0, c_.mma_fraction_bits - emax), q = std::ldexp(1.0, emax - c_.mma_fraction_bits);
    double sum = std::trunc(static_cast<double>(c) * up);
    for (std::int64_t i = 0; i < n; ++i) sum += std::trunc(t[i] * up);
    const double exact = sum * q;
    R r = static_cast<R>(exact);
    if (std::fabs(static_cast<double>(r)) > std::fabs(exact)) r = std::nextafter(r, R(0));
    return r;
  }

  R dot(const double* k) {
    const std::int64_t d = x_.d_qk;
    R sum = 0;
    if (c_.qk_accumulation == ATTN_ACC_TENSOR_CORE) {
      for (std::int64_t i = 0; i < d; i += c_.mma_terms)
        sum = tensor_step(sum, q_.data() + i, 1, k + i, 1, std::min<std::int64_t>(c_.mma_terms, d - i));
      return sum;
    }
    R lane[8] = {};
    const std::int64_t lanes = s_.lanes ? 8 : 1;
    for (std::int64_t i = 0; i < d; ++i) {
      const R b = static_cast<R>(k[i]);
      R& l = lane[i % lanes];
      if (c_.qk_accumulation == ATTN_ACC_FMA) {
        l = std::fma(q_[i], b, l);
      } else {
        const R product = q_[i] * b;
        l = l + product;
      }
    }
    for (std::int64_t i = 0; i < lanes; ++i) sum = sum + lane[i];
    return sum;
  }

  void scores() {
    for (const double v : x_.q) q_.push_back(static_cast<R>(v));
    for (std::int64_t j = 0; j < x_.n; ++j) {
      const R raw = dot(x_.k.data() + j * x_.d_qk);
      score_.push_back(c_.exp_form == ATTN_EXP_SCALED ? static_cast<R>(raw * scale_) : raw);
    }
  }

  // acc += P.V over keys [j0, j1).
  void accumulate(std::int64_t j0, std::int64_t j1, const std::vector<R>& p, std::vector<R>& acc) {
    const std::int64_t d = x_.d_v;
    for (std::int64_t e = 0; e < d; ++e) {
      R sum = acc[e];
      const double* v = x_.v.data() + j0 * d + e;
      if (c_.pv_accumulation == ATTN_ACC_TENSOR_CORE) {
        for (std::int64_t j = j0; j < j1; j += c_.mma_terms)
          sum = tensor_step(sum, p.data() + (j - j0), 1, v + (j - j0) * d, d,
                            std::min<std::int64_t>(c_.mma_terms, j1 - j));
      } else {
        for (std::int64_t j = j0; j < j1; ++j) {
          const R b = static_cast<R>(v[(j - j0) * d]);
          if (c_.pv_accumulation == ATTN_ACC_FMA) {
            sum = std::fma(p[j - j0], b, sum);
          } else {
            const R product = p[j - j0] * b;
            sum = sum + product;
          }
        }
      }
      acc[e] = sum;
    }
  }

  R row_sum(const std::vector<R>& p, R start) {
    if (!s_.lanes) {
      for (const R x : p) start = start + x;
      return start;
    }
    R lane[8] = {};
    for (std::size_t i = 0; i < p.size(); ++i) lane[i % 8] = lane[i % 8] + p[i];
    R sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    return start + sum;
  }

  std::int64_t key(std::int64_t j) const { return x_.key.empty() ? j : x_.key[j]; }

  // Keys at positions [lo, hi), blocks counted from first_key: normalised O and the LSE.
  void part(std::int64_t lo, std::int64_t hi, std::int64_t first_key, std::vector<R>& o, R& lse) {
    const std::int64_t block_k = c_.algorithm == ATTN_ALG_STANDARD ? std::int64_t(1) << 40 : s_.block_k;
    std::vector<R> acc(x_.d_v, R(0)), p, rounded;
    R m = -std::numeric_limits<R>::infinity(), l = 0;
    for (std::int64_t j = lo; j < hi;) {
      const std::int64_t begin = j, block = (key(j) - first_key) / block_k;
      R block_m = -std::numeric_limits<R>::infinity();
      for (; j < hi && (key(j) - first_key) / block_k == block; ++j) block_m = std::max(block_m, score_[j]);
      R new_m = std::max(m, block_m), factor = 1;
      if (begin != lo) {
        if (c_.rescale == ATTN_RESCALE_LAZY && rise_in_log2(m, new_m) <= static_cast<R>(c_.lazy_threshold)) new_m = m;
        factor = new_m == m ? R(1) : rescale(m, new_m);
      }
      const R frame = s_.two_exps ? block_m : new_m;
      p.clear();
      rounded.clear();
      for (std::int64_t i = begin; i < j; ++i) {
        p.push_back(element(score_[i], frame));
        rounded.push_back(static_cast<R>(round_to(dtype_of(c_.p_dtype), static_cast<double>(p.back()))));
      }
      if (c_.algorithm == ATTN_ALG_FA1) {
        if (s_.continues) {
          const R sum = l * factor;
          for (R& v : acc) v = v * sum;
          accumulate(begin, j, rounded, acc);
          l = row_sum(p, sum);
          for (R& v : acc) v = divide(v, l);
          m = new_m;
          continue;
        }
        const R own = s_.two_exps && block_m != new_m ? rescale(block_m, new_m) : R(1);
        std::vector<R> pv(x_.d_v, R(0));
        accumulate(begin, j, rounded, pv);
        const R old_l = l * factor;
        l = old_l + own * row_sum(p, 0);
        for (std::int64_t e = 0; e < x_.d_v; ++e) {
          const R a = old_l * acc[e], b = own * pv[e];
          acc[e] = divide(a + b, l);
        }
      } else {
        for (R& v : acc) v = v * factor;
        accumulate(begin, j, rounded, acc);
        l = row_sum(p, l * factor);
      }
      m = new_m;
    }
    o = acc;
    if (c_.algorithm != ATTN_ALG_FA1)
      for (R& v : o) v = divide(v, l);
    lse = lse_of(m, l);
  }

  void split(std::vector<R>& o, R& lse) {
    std::vector<std::vector<R>> parts;
    std::vector<R> part_lse;
    for (std::int64_t j = 0; j < x_.n;) {
      const std::int64_t begin = j, which = key(j) / s_.keys_per_split;
      while (j < x_.n && key(j) / s_.keys_per_split == which) ++j;
      parts.emplace_back();
      part_lse.emplace_back();
      part(begin, j, which * s_.keys_per_split, parts.back(), part_lse.back());
    }
    const R top = *std::max_element(part_lse.begin(), part_lse.end());
    R sum = 0;
    std::vector<R> weight;
    for (const R x : part_lse) {
      weight.push_back(exp_of(x - top, c_.exp_error));
      sum = sum + weight.back();
    }
    lse = top + log_of(sum);
    o.assign(x_.d_v, R(0));
    const bool free = c_.split_merge == ATTN_MERGE_DIVISION_FREE;
    for (std::size_t b = 0; b < parts.size(); ++b) {
      const R w = free ? exp_of(part_lse[b] - lse, c_.exp_error) : weight[b];
      for (std::int64_t e = 0; e < x_.d_v; ++e) {
        const R product = w * parts[b][e];
        o[e] = o[e] + product;
      }
    }
    if (!free)
      for (R& v : o) v = divide(v, sum);
  }

  const SimulatedKernel& s_;
  const attn_contract& c_;
  const RowValues& x_;
  Errors errors_;
  Random random_;
  R scale_, c2_;
  std::vector<R> q_, score_;
};

inline Output simulate(const SimulatedKernel& s, const RowValues& x, Errors errors, std::uint64_t seed) {
  if (s.contract.acc_dtype == ATTN_FP64) return Simulator<double>(s, x, errors, seed).run();
  return Simulator<float>(s, x, errors, seed).run();
}

}  // namespace attest::bound_test
