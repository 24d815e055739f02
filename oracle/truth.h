// Truth: the oracle's value of an output element, with a radius that the oracle certifies.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "oracle/row.h"

namespace attest {

// What an element must be. Finite elements carry a value; the others are compared by class.
enum class TruthKind { finite, zero, neg_inf, pos_inf, nan };
// zero: exactly 0 (O of a row without visible keys).

struct TruthElement {
  TruthKind kind = TruthKind::finite;
  double hi = 0, lo = 0;  // value = hi + lo, unevaluated
  double radius = 0;      // |exact - (hi + lo)| <= radius
};

enum class Tier { fp64, double_double, exact128, exact256, exact512 };

struct RowTruth {
  std::vector<TruthElement> o;  // [d_v]
  TruthElement lse;             // natural log
  Tier tier = Tier::fp64;
};

// The definition at a given tier. fp64 and double_double carry a running radius (numerics note), the exact tiers are
// mpfi enclosures. Empty rows and NaN rows are classified before any arithmetic (table in oracle/TRUTH.md). A tier that
// cannot hold the row (overflow, weights that tell nothing) says radius = +inf: escalate. stats is not read: an error
// in the working quantities must not be able to certify itself.
RowTruth row_truth(const Row& row, const RowStats& stats, Tier tier);

// The same for one element of O (column e), or LSE when e < 0: for element-wise escalation.
TruthElement element_truth(const Row& row, const RowStats& stats, std::int64_t e, Tier tier);

// A row whose weights are computed once a tier, on demand: escalating many elements of one row costs one pass over its
// keys, and each element one pass over its column. Not for use by two threads at once. Keeps the row's pointers.
class SoftmaxTier;
class RowOracle {
 public:
  explicit RowOracle(const Row& row);
  ~RowOracle();
  RowOracle(RowOracle&&) noexcept;
  RowOracle& operator=(RowOracle&&) noexcept;
  TruthElement o(std::int64_t e, Tier tier);
  TruthElement lse(Tier tier);
  RowTruth all(Tier tier);

 private:
  const SoftmaxTier& at(Tier tier);
  void columns(std::int64_t first, std::span<TruthElement> out, Tier tier);

  Row row_;                               // the keys that take part: those with a finite score
  std::vector<const double*> v_blocked_;  // values of visible keys whose score is -inf
  TruthKind kind_ = TruthKind::finite;    // of the row: finite, zero (no key takes part) or nan
  std::array<std::unique_ptr<SoftmaxTier>, 5> tiers_;
};

// One step of the online softmax, exact inputs: from (m, l, acc) over b keys to (m', l', acc'), one row.
struct StepRow {
  double m = 0, l = 0;
  std::vector<double> acc;       // [d_v] or empty
  std::vector<double> scores;    // [b], -inf = blocked
  std::vector<const double*> v;  // [b] pointers to [d_v]; empty when acc is
};
struct StateTruth {
  TruthElement m, l;  // merge of (O, LSE): m is LSE, l unused
  std::vector<TruthElement> acc;
};
StateTruth step_truth(const StepRow& row, Tier tier);

// Merge of any number of parts, exact inputs, one row.
struct MergeRow {
  StateKind kind = StateKind::mla;
  std::vector<double> m, l;        // [parts]; olse: m holds LSE, l unused
  std::vector<const double*> acc;  // [parts] pointers to [d_v]; unused for ml
  std::int64_t d_v = 0;
};
StateTruth merge_truth(const MergeRow& row, Tier tier);

}  // namespace attest
