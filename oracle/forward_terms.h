// The parts of a forward bound, shared by its files. Internal to the bounds; the formulas are in oracle/BOUNDS.md.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/bound.h"

namespace attest {

// Keys that one running maximum goes over: the whole row, or one split.
struct Segment {
  std::int64_t begin = 0, end = 0;  // positions in the row
  double max_gap = 0;               // gap of the segment's largest score to the row's
  double scaled_max = 0;            // scale * max x
  double log_sum = 0, lse = 0;      // log of the sum of weights below its own max; scaled_max + log_sum
  std::int64_t blocks = 1;          // blocks with a visible key
  std::int64_t rises = 0;           // at most so many of them raise the computed maximum
  std::int64_t pv_steps = 0;        // tensor-core steps with a visible key
  double pv = 0, sum = 0;           // relative errors of the P.V and row sums
  std::int64_t size() const { return end - begin; }
};

// Everything per key that does not depend on the column, hoisted. Weights are relative to the row's true maximum.
struct ForwardTerms {
  std::vector<Segment> segments;
  bool cuts_known = true;     // false: one segment stands for all, each key charged the worst split it can be in
  std::vector<double> delta;  // error of the scaled score
  double delta_max = 0;
  std::vector<double> rises_after;  // rescales that a key's contribution can still meet
  std::vector<double> tau;          // log-weight error, common to numerator and denominator
  std::vector<double> tau_lse;      // the same with what only the LSE sees (merge weights)
  std::vector<double> floor;   // absolute weight error in the computed frame: results of exp below the normal range
  std::vector<double> excess;  // (largest weight) - w
  std::vector<double> p_unit;  // relative rounding error of P above its format's floor
  std::vector<double> rho;     // error of P's rounding, not over W
  std::vector<double> alpha;   // numerator-only relative error
  std::vector<double> split_error;     // part of tau that a split's LSE and a renormalised merge add
  std::vector<double> numerator_only;  // part of alpha that a division-free merge adds
  double merge_lse = 0;                // error of merge weights in the LSE, weighted
  double parts = 1;                    // splits that can hold a key
  double T = 0;                        // sum of excess / W
  double sigma = 0;                    // denominator-only relative error
  double merge = 0;                    // relative error of the result of a division-free merge
  double division = 0;                 // of the last division, where it is the last operation
  double frame = 1;                    // computed frames may lie this factor below the true one: e^log_frame
  double log_frame = 0;
  double inverse_sum =
      1;  // 1 / (smallest computed sum in its own frame): an absolute error F of weights costs F of these
  double floor_error = 0;  // absolute error of the result by underflow of products and sums

  // floor[j] in the true frame; frame may be infinite.
  double true_floor(std::size_t j) const { return floor[j] > 0 ? floor[j] * frame : 0; }
};

// forward_segments.cpp
std::vector<Segment> make_segments(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                                   ForwardTerms& t);
// forward_weights.cpp
void fill_scores(const Arithmetic& a, const Row& row, const RowStats& stats, ForwardTerms& t);
void fill_weights(const Arithmetic& a, const Row& row, const RowStats& stats, ForwardTerms& t);
// forward_accumulation.cpp
void fill_sums(const Arithmetic& a, const KeyPlan& plan, const Row& row, ForwardTerms& t);
void fill_accumulation(const Arithmetic& a, const RowStats& stats, ForwardTerms& t);

// forward_overflow.cpp. Whether scores and their scaling, or P, may leave their format (then any output is admitted),
// whether the LSE alone may, and which columns may overflow their accumulator.
bool scores_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t);
bool weights_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t);
bool lse_may_overflow(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t);
void mark_overflowing_columns(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                              const ForwardTerms& t, const std::vector<double>& value_sum,
                              std::vector<bool>& may_overflow);

// Sums over keys, per column.
struct ColumnSums {
  std::vector<double> weight;     // sum excess |v - o| / W
  std::vector<double> numerator;  // sum (rho + (w + excess + rho) alpha) |v| / W
  std::vector<double> value_sum;  // sum |v|
  std::vector<double> low, high;  // hull of the visible v
};
// forward_columns.cpp
ColumnSums sum_columns(const Row& row, const RowStats& stats, const ForwardTerms& t);
double linear_bound(const ForwardTerms& t, const ColumnSums& sums, std::int64_t e, double o);

// forward_box.cpp: exact extremum over the box of weights, per column; never vacuous.
struct BoxBound {
  std::vector<double> half_width;  // of sum c (v - o) / sum c
  std::vector<double> bound;       // before merge and division
};
BoxBound box_bound(const Arithmetic& a, const Row& row, const RowStats& stats, const ForwardTerms& t);

// forward_lse.cpp
double lse_bound(const Arithmetic& a, const RowStats& stats, const ForwardTerms& t);

// forward_expected.cpp, expected_frames.cpp, expected_cells.cpp: fills spread and drift of o and lse; false where the
// model does not hold.
bool expected_tier(const Arithmetic& a, const KeyPlan& plan, const Row& row, const RowStats& stats,
                   const ForwardTerms& t, RowBound& bound);

}  // namespace attest
