// The parts of the expected tier. Internal to the bounds; corrections W1 to W3 of the numerics note, section 5.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/forward_terms.h"

namespace attest {

// lambda^2 for which groups are made: one rounding cell spans at most so many of them.
inline constexpr double group_width = 36;

// How a sequential kernel walks the row: frames are running maxima.
struct Frames {
  std::vector<double> frame;      // [n] gap of the running maximum that the key's weight is relative to
  std::vector<double> local_gap;  // [n] of the key to that maximum
  std::vector<bool> starts;       // [n] first key of a block
  std::vector<bool> restarts;     // [n] first key of a sum that begins at zero (row, split, block of FA1)
};
// own_maximum: each block is weighed by its own maximum (one way to write FA1).
Frames walk(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats, const ForwardTerms& t,
            bool own_maximum);

// Adds to square[e] the sum over groups of (sum over the group's keys of weight_j |f_j(e)|)^2; f is v - o, or v, or 1
// in a single column. Keys of one bucket of `position` make a group.
enum class Factor { deviation, value, one };
void add_grouped(const std::vector<double>& weight, const std::vector<double>& position, double width, Factor factor,
                 const Row& row, const RowStats& stats, std::vector<double>& square);

// W1: roundings of one accumulator, grouped by its binade and by the addend in units of its last place: the square of
// the spread of (sum p f) / W; the largest partial sum and addend; and the sum over blocks of what a block ends with,
// for drifts that every block adds.
struct Accumulation {
  double square = 0;
  double largest_partial = 0, largest_term = 0, block_ends = 0;
};
class CellSums {
 public:
  explicit CellSums(std::size_t n);
  // values: stride apart, or nullptr for all ones.
  Accumulation accumulate(const Arithmetic& a, const RowStats& stats, const Frames& f, const double* const* values,
                          std::int64_t column, bool separate_product);

 private:
  void add(int exponent, double bucket, double error);
  double finish();

  struct Cell {
    int exponent;
    double bucket, sum;
    std::uint32_t stamp;
  };
  std::vector<Cell> cells_;
  std::vector<std::size_t> used_;
  std::uint32_t stamp_ = 0;
  std::vector<double> weights_;  // of the frames last walked: they serve every column
  const Frames* prepared_ = nullptr;
};

}  // namespace attest
