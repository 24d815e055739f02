// Step and merge: both are sums over terms with exactly given log-weights. A state (m, l, acc) is the term with score m
// and values (l, acc); a key is the term with score s_j and values (1, v_j). The shift is the exact maximum m'.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/truth.h"
#include "oracle/value_class.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Terms that take part, and empty states beside them, whose weight is exactly 0.
struct Terms {
  std::vector<double> score;
  std::vector<const double*> l, acc;
  std::vector<const double*> empty_l, empty_acc;

  bool nan() const {
    return std::any_of(score.begin(), score.end(), [](double s) { return std::isnan(s); });
  }
  double max() const { return score.empty() ? -infinity : *std::max_element(score.begin(), score.end()); }

  void state(double m, const double* its_l, const double* its_acc) {
    const bool empty = m == -infinity;
    if (!empty) score.push_back(m);
    (empty ? empty_l : l).push_back(its_l);
    (empty ? empty_acc : acc).push_back(its_acc);
  }
  void key(double s, const double* v) {
    if (s == -infinity) return;  // blocked: its value is not looked at
    static constexpr double one = 1;
    score.push_back(s);
    l.push_back(&one);
    acc.push_back(v);
  }
};

enum class Form { sum, mean };

// All columns of one quantity. `defined` is false where exp(inf - inf) or a NaN score makes everything NaN.
void fill(std::span<TruthElement> out, const SoftmaxTier* tier, std::span<const double* const> v,
          std::span<const double* const> empty, bool defined, Form form) {
  if (!defined) return std::fill(out.begin(), out.end(), TruthElement{TruthKind::nan});
  classify(v, empty, 0, out);
  for_finite_runs(out, [&](std::int64_t begin, std::span<TruthElement> run) {
    if (tier == nullptr)
      std::fill(run.begin(), run.end(), TruthElement{TruthKind::zero});
    else if (form == Form::sum)
      tier->sums(v, begin, run);
    else
      tier->means(v, begin, run);
  });
}

TruthElement maximum(double m, bool nan) {
  if (nan) return {TruthKind::nan};
  if (m == -infinity) return {TruthKind::neg_inf};
  if (m == infinity) return {TruthKind::pos_inf};
  return {TruthKind::finite, m, 0, 0};
}

StateTruth fold(const Terms& terms, std::int64_t d_v, Tier tier) {
  const bool nan = terms.nan(), defined = !nan && terms.max() < infinity;
  std::unique_ptr<SoftmaxTier> softmax;
  if (defined && !terms.score.empty()) softmax = make_tier(terms.score, tier);
  StateTruth t;
  t.m = maximum(nan ? 0 : terms.max(), nan);
  fill({&t.l, 1}, softmax.get(), terms.l, terms.empty_l, defined, Form::sum);
  t.acc.resize(d_v);
  fill(t.acc, softmax.get(), terms.acc, terms.empty_acc, defined, Form::sum);
  return t;
}

StateTruth merge_normalised(const Terms& terms, std::int64_t d_v, Tier tier) {
  const bool defined = !terms.nan() && terms.max() < infinity;
  std::unique_ptr<SoftmaxTier> softmax;
  if (defined && !terms.score.empty()) softmax = make_tier(terms.score, tier);
  StateTruth t;
  if (!defined)
    t.m = {TruthKind::nan};
  else if (softmax)
    t.m = softmax->log_sum();
  else
    t.m = {TruthKind::neg_inf};
  t.acc.resize(d_v);
  fill(t.acc, softmax.get(), terms.acc, terms.empty_acc, defined, Form::mean);
  return t;
}

}  // namespace

StateTruth step_truth(const StepRow& row, Tier tier) {
  Terms terms;
  terms.state(row.m, &row.l, row.acc.data());
  for (std::size_t j = 0; j < row.scores.size(); ++j) terms.key(row.scores[j], row.acc.empty() ? nullptr : row.v[j]);
  return fold(terms, static_cast<std::int64_t>(row.acc.size()), tier);
}

StateTruth merge_truth(const MergeRow& row, Tier tier) {
  Terms terms;
  const bool normalised = row.kind == StateKind::olse;
  for (std::size_t b = 0; b < row.m.size(); ++b)
    terms.state(row.m[b], normalised ? nullptr : &row.l[b], row.kind == StateKind::ml ? nullptr : row.acc[b]);
  if (normalised) return merge_normalised(terms, row.d_v, tier);
  return fold(terms, row.kind == StateKind::ml ? 0 : row.d_v, tier);
}

}  // namespace attest
