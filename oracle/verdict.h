// Verdict: a pure function of (truth, radius, bound, output), NaN first, separate from the explanation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "oracle/bound.h"
#include "oracle/truth.h"

namespace attest {

// In order of precedence, the strongest last.
enum class Verdict { pass, vacuous, undecided, fail };

// What came of a check: a verdict, or a reason why there is none.
enum class Outcome { pass, fail, vacuous, undecided, rejected, not_run };
std::string_view name(Verdict v);
std::string_view name(Outcome o);
Outcome outcome_of(Verdict v);
Verdict worst(Verdict a, Verdict b);

struct Judgement {
  Verdict verdict = Verdict::pass;
  double error = 0;  // |got - truth|, NaN when either class differs
  double ratio = 0;  // error / bound; +inf on a class mismatch
};

// got: the output element, exact. bound.deterministic == +inf admits anything, NaN included (VACUOUS). Otherwise a
// NaN where none is due fails, whatever the bound. -0 equals +0.
Judgement judge(const TruthElement& truth, const ElementBound& bound, double got);

// The same with a plain bound (laws that add several).
Judgement judge(const TruthElement& truth, double bound, double got);

// One line: got, want, error, bound, ratio, ulps; hex floats beside decimals.
std::string explain(const TruthElement& truth, const ElementBound& bound, double got, DType format);

}  // namespace attest
