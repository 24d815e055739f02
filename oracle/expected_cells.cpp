// Correction W1: equal addends in one binade of the accumulator round alike, and addends below half a unit in its last
// place are all dropped. Errors of one cell add up as a sum, only cells add up as squares.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "oracle/expected_terms.h"

namespace attest {
namespace {

// ilogb of a normal double and 2^e, without a call: they are the inner loop.
int exponent_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 52 & 0x7ff) - 1023;
}

double power_of_two(int e) {
  const std::uint64_t bits = static_cast<std::uint64_t>(std::clamp(e, -1022, 1023) + 1023) << 52;
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

CellSums::CellSums(std::size_t n) {
  std::size_t size = 16;
  while (size < 6 * n) size *= 2;
  cells_.assign(size, Cell{0, 0, 0, 0});
}

void CellSums::add(int exponent, double bucket, double error) {
  std::uint64_t bits;
  std::memcpy(&bits, &bucket, sizeof bits);
  std::uint64_t h = (bits ^ (static_cast<std::uint64_t>(exponent) << 40)) * 0x9E3779B97F4A7C15u;
  std::size_t i = static_cast<std::size_t>(h >> 20) & (cells_.size() - 1);
  while (cells_[i].stamp == stamp_ && (cells_[i].exponent != exponent || cells_[i].bucket != bucket)) {
    i = (i + 1) & (cells_.size() - 1);
  }
  if (cells_[i].stamp != stamp_) {
    cells_[i] = {exponent, bucket, 0, stamp_};
    used_.push_back(i);
  }
  cells_[i].sum += error;
}

double CellSums::finish() {
  double square = 0;
  for (const std::size_t i : used_) square += cells_[i].sum * cells_[i].sum;
  used_.clear();
  return square;
}

Accumulation CellSums::accumulate(const Arithmetic& a, const RowStats& stats, const Frames& f,
                                  const double* const* values, std::int64_t column, bool separate_product) {
  ++stamp_;
  Accumulation r;
  const std::size_t n = f.frame.size();
  const int precision = facts(dtype_of(a.contract.acc_dtype)).precision;
  constexpr int product = 20000;  // keeps products and sums in cells of their own
  double sum = 0;
  double unit = 0;  // of the frame, in the result
  if (weights_.size() < n) weights_.resize(n);
  if (!prepared_ || prepared_ != &f) {
    for (std::size_t j = 0; j < n; ++j) weights_[j] = std::exp(-f.local_gap[j]);
    prepared_ = &f;
  }
  for (std::size_t j = 0; j < n; ++j) {
    if (f.starts[j]) {
      if (j > 0) r.block_ends += std::fabs(sum) * unit;
      const double next = std::exp(-f.frame[j]) / stats.W;
      if (f.restarts[j]) {
        sum = 0;
      } else if (f.frame[j] != f.frame[j - 1]) {
        sum *= std::exp(f.frame[j] - f.frame[j - 1]);
        const double error = a.u * std::fabs(sum) * next;  // a product of its own
        r.square += error * error;
      }
      unit = next;
    }
    const double p = weights_[j], addend = values ? p * values[j][column] : p;
    if (addend == 0) continue;
    if (separate_product && values) {
      const int e = exponent_of(addend);
      add(product + e, std::floor(addend * power_of_two(precision + 5 - e)), a.u * std::fabs(addend) * unit);
    }
    const bool first = sum == 0;  // 0 + x is exact, a fused product is not
    sum += addend;
    r.largest_partial = std::max(r.largest_partial, std::fabs(sum) * unit);
    r.largest_term = std::max(r.largest_term, std::fabs(addend) * unit);
    if (sum == 0 || (first && (separate_product || !values))) continue;
    const int e = exponent_of(sum);
    add(e, std::floor(group_width * (addend * power_of_two(precision - 1 - e))), a.u * std::fabs(sum) * unit);
  }
  r.block_ends += std::fabs(sum) * unit;
  r.square += finish();
  return r;
}

}  // namespace attest
