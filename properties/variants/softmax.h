// Scores, weights, rescale factors and LSE in the domain that a recipe works in.
#pragma once

#include <cmath>
#include <limits>

#include "properties/variants/exps.h"
#include "properties/variants/recipe.h"

namespace attest::variants {

// x: a raw score q.k, or already scaled where the recipe scales first. m: a maximum of those.
template <class T, Recipe r>
class Softmax {
 public:
  explicit Softmax(double scale)
      : exact_scale_(scale), scale_(static_cast<T>(scale)), c2_(static_cast<T>(scale) * static_cast<T>(M_LOG2E)) {}

  T score(T dot) const {
    if constexpr (r.argument != ATTN_EXP_SCALED) return dot;
    // One rounding in all: the factor has 29 bits more than the score.
    if constexpr (r.base_4_scores) return static_cast<T>(static_cast<double>(dot) * (exact_scale_ * 0.5 * M_LOG2E));
    return dot * scale_;
  }

  T weight(T x, T m) const {
    if constexpr (r.argument == ATTN_EXP2_FMA) return exp2_of<r.exp>(std::fma(x, c2_, -(m * c2_)));
    return rescale(x, m);
  }

  // exp of how far `from` lies below `to`.
  T rescale(T from, T to) const {
    if constexpr (r.argument == ATTN_EXP2_FMA) return exp2_of<r.exp>((from - to) * c2_);
    if constexpr (r.base_4_scores) return exp2_of<r.exp>(2 * (from - to));
    if constexpr (r.argument == ATTN_EXP_SCALED) return exp_of<r.exp>(from - to);
    return exp_of<r.exp>((from - to) * scale_);
  }

  // Whether a maximum that rises so far must be followed.
  bool rises_far(T from, T to) const {
    const T log2_rise = r.base_4_scores                 ? 2 * (to - from)
                        : r.argument == ATTN_EXP_SCALED ? (to - from) * static_cast<T>(M_LOG2E)
                                                        : (to - from) * c2_;
    return log2_rise > static_cast<T>(r.lazy_threshold);
  }

  // In base e whatever the output's base is.
  T lse(T m, T l) const {
    if constexpr (r.base_4_scores)
      return static_cast<T>(2 * static_cast<double>(m) * M_LN2 + std::log(static_cast<double>(l)));
    if constexpr (r.argument == ATTN_EXP_SCALED) return m + log_of<r.exp>(l);
    return m * scale_ + log_of<r.exp>(l);
  }
  T lse_in_base_2(T m, T l) const { return std::fma(m, c2_, log2_of(l)); }

 private:
  double exact_scale_;
  T scale_, c2_;
};

}  // namespace attest::variants
