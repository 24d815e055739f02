// Bound: the largest error that a Contract allows for an element, derived (never tuned). See oracle/BOUNDS.md.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "impl/attention.h"
#include "oracle/row.h"
#include "oracle/truth.h"

namespace attest {

// Roundoff constants of a format.
struct FormatFacts {
  double u;               // unit roundoff, round to nearest
  int precision;          // significand bits with the hidden one
  int min_exponent;       // of the smallest normal number: 2^min_exponent
  double half_subnormal;  // beta: half the smallest subnormal
  double max;
};
FormatFacts facts(DType format);
DType dtype_of(std::int32_t attn_dtype);
std::int32_t attn_dtype_of(DType format);

// How the keys of a row fall into blocks and splits, from the problem's tiling and the Contract's defaults.
struct KeyPlan {
  std::int64_t tk = 0;
  std::int64_t block_k = 1;         // keys per block, all but the last of a split full
  std::int64_t splits = 1;          // 1 unless the Contract merges splits
  std::int64_t keys_per_split = 0;  // 0: where splits begin is unknown, charge the worst
};
KeyPlan key_plan(const attn_contract& contract, std::int64_t tk, const attn_tiling& tiling);

struct ElementBound {
  // 0: exact, or compared by class. +inf: the Contract admits anything here (a declared format may overflow).
  double deterministic = 0;
  bool ill_conditioned = false;  // the box form tends to the hull of V: hold it, but do not call it PASS
  double before_rounding = 0;    // deterministic without the output rounding
  // expected tier: |error| <= lambda * spread + drift (then output rounding), where valid
  double spread = 0, drift = 0;
  double half_ulp = 0;  // output rounding at |truth| + bound
};
struct RowBound {
  std::vector<ElementBound> o;
  // Natural log units, whatever the Contract's lse_base: for base 2, either multiply the output by ln 2 in double or
  // multiply truth and bound by log2 e. The kernel's conversion and the caller's are in the bound.
  ElementBound lse;
  double weight_error = 0;  // T = sum pi_j t_j
  // No computed weight is further from the true one than this, in natural log units: errors of the scores and of exp,
  // and the frame in which a row's weights are computed.
  double log_error = std::numeric_limits<double>::infinity();
  bool expected_valid = false;  // false: the tier is not derived for this Contract, plan or row
};

// Bound of O and LSE of one row: row and stats as make_row and row_stats give them, out the stored format of O.
// Shapes: o has d_v entries. With expected = false the statistical parts are left 0. Source: oracle/BOUNDS.md.
RowBound forward_bound(const attn_contract& contract, const KeyPlan& plan, const Row& row, const RowStats& stats,
                       DType out, bool expected);

// The smaller of the expected tier at lambda and the deterministic bound; the latter where the former was not filled
// in. |error| <= expected_bound(e, truth, lambda) with probability 1 - 2 exp(-lambda^2 / 2) per element.
double expected_bound(const ElementBound& b, double truth, double lambda);

// Step: error of (m, l, acc) after folding blocks one by one from a state with given errors (section 5 of the note).
struct StateBound {
  double m = 0;  // 0: the maximum of given scores is exact. olse merge: error of LSE
  double l = 0;
  std::vector<double> acc;  // olse merge: error of O
  bool ill_conditioned = false;
};
class StepBound {
 public:
  // Exact initial state.
  StepBound(const attn_contract& contract, double m, double l, std::span<const double> acc);
  // Folds one block; scores and v as in StepRow.
  void fold(std::span<const double> scores, std::span<const double* const> v);
  StateBound state() const;
  // Bounds of O = acc / l and LSE = m + log l computed from the folded state in the Contract's arithmetic.
  std::vector<double> o() const;
  double lse() const;

 private:
  void rescale(double m);

  attn_contract contract_;
  double m_, l_, l_error_, operations_ = 0;
  std::vector<double> a_, a_abs_, a_error_;
  std::vector<bool> is_nan_;  // columns into which a NaN was put
};

// Merge of two states with given input errors: values (approximate truth of each side) and bounds. Trees recurse.
struct MergeSide {
  StateKind kind;
  double m, l;
  std::span<const double> acc;
  StateBound error;
};
StateBound merge_bound(const attn_contract& contract, const MergeSide& a, const MergeSide& b);

}  // namespace attest
