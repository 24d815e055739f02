// Sums of products in every way that recipe.h names: whole dot products, and running sums that are rescaled.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "properties/variants/recipe.h"

namespace attest::variants {

constexpr int mma_terms = 16, mma_fraction_bits = 25;  // of sm_90's fp16 and bf16 instructions

// One tensor-core instruction on up to mma_terms exact products: everything is cut to fraction bits below the largest
// exponent (never below that of the smallest normal numbers), added, and rounded towards zero.
template <class A, class B>
float mma_step(float c, std::size_t n, const A& a, const B& b) {
  std::array<double, mma_terms> t{};
  int largest = -133;
  double plain = static_cast<double>(c);
  if (c != 0 && std::isfinite(c)) largest = std::max(largest, std::ilogb(c));
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(a(i)), y = static_cast<double>(b(i));
    t[i] = x * y;
    plain += t[i];
    if (t[i] != 0 && std::isfinite(t[i])) largest = std::max(largest, std::ilogb(x) + std::ilogb(y));
  }
  if (!std::isfinite(plain)) return static_cast<float>(plain);
  const double up = std::ldexp(1.0, mma_fraction_bits - largest);
  double sum = std::trunc(static_cast<double>(c) * up);
  for (std::size_t i = 0; i < n; ++i) sum += std::trunc(t[i] * up);
  const double exact = sum * std::ldexp(1.0, largest - mma_fraction_bits);
  const float r = static_cast<float>(exact);
  return std::fabs(static_cast<double>(r)) > std::fabs(exact) ? std::nextafter(r, 0.0f) : r;
}

// The sum of products a(i) b(i) so far. Non-finite terms give what IEEE arithmetic gives.
template <class T, Sum how>
class Accumulator {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

 public:
  Accumulator() = default;
  explicit Accumulator(T start) : high_(start), wide_(start), lanes_{start} {}

  void rescale(T factor) {
    if constexpr (how == Sum::lanes)
      for (T& l : lanes_) l *= factor;
    else if constexpr (how == Sum::wide)
      wide_ *= factor;
    else
      high_ *= factor, low_ *= factor;
  }

  template <class A, class B>
  void add(std::size_t n, const A& a, const B& b) {
    if constexpr (how == Sum::pairwise) {
      if (n > 0) high_ += tree(0, n, a, b);
    } else if constexpr (how == Sum::blocks) {
      T sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum = std::fma(a(i), b(i), sum);
      high_ += sum;
    } else if constexpr (how == Sum::mma) {
      for (std::size_t i = 0; i < n; i += mma_terms)
        high_ = mma_step(
            high_, std::min<std::size_t>(mma_terms, n - i), [&](std::size_t t) { return a(i + t); },
            [&](std::size_t t) { return b(i + t); });
    } else {
      for (std::size_t i = 0; i < n; ++i) add_one(i, a(i), b(i));
    }
  }

  T value() const {
    if constexpr (how == Sum::lanes)
      return ((lanes_[0] + lanes_[1]) + (lanes_[2] + lanes_[3])) + ((lanes_[4] + lanes_[5]) + (lanes_[6] + lanes_[7]));
    else if constexpr (how == Sum::wide)
      return static_cast<T>(wide_);
    else
      // An infinity makes the error term NaN; the sum itself is right.
      return std::isfinite(low_) ? high_ + low_ : high_;
  }

 private:
  void add_one(std::size_t i, T a, T b) {
    if constexpr (how == Sum::fma) {
      high_ = std::fma(a, b, high_);
    } else if constexpr (how == Sum::mul_add) {
      const T product = a * b;
      high_ += product;
    } else if constexpr (how == Sum::lanes) {
      lanes_[i % 8] = std::fma(a, b, lanes_[i % 8]);
    } else if constexpr (how == Sum::wide) {
      wide_ += static_cast<Wide>(a) * static_cast<Wide>(b);
    } else {
      const T product = a * b, rest = std::fma(a, b, -product);
      const T sum = high_ + product, back = sum - high_;
      const T error = (high_ - (sum - back)) + (product - back);  // Knuth's two-sum
      high_ = sum;
      low_ += error + rest;
    }
  }

  template <class A, class B>
  static T tree(std::size_t begin, std::size_t end, const A& a, const B& b) {
    if (end - begin == 1) return a(begin) * b(begin);
    const std::size_t middle = begin + (end - begin) / 2;
    return tree(begin, middle, a, b) + tree(middle, end, a, b);
  }

  T high_ = 0, low_ = 0;
  Wide wide_ = 0;
  std::array<T, 8> lanes_{};
};

template <Sum how, class T>
T dot(const T* a, const T* b, std::size_t n) {
  Accumulator<T, how> sum;
  sum.add(
      n, [&](std::size_t i) { return a[i]; }, [&](std::size_t i) { return b[i]; });
  return sum.value();
}

}  // namespace attest::variants
