// One row with its truth and its bound, and the running account of a check. What laws are made of.
#pragma once

#include <cmath>
#include <string>

#include "oracle/bound.h"
#include "oracle/row.h"
#include "oracle/truth.h"
#include "properties/execute.h"

namespace attest {

// Truth and bound of one forward row, in the Contract's own terms (base of LSE, value of an empty LSE).
struct Evaluated {
  Row row;
  RowStats stats;
  RowTruth truth;
  RowBound bound;
  bool anything = false;  // reached_by_head(): every deterministic bound is infinite
};
Evaluated evaluate_row(const Kernel& kernel, const Problem& problem, const RowIndex& at, bool expected = false);

// Whether the kernel's Contract lets non-finite values at keys of a row's head, which other rows see but this one does
// not, reach it, and there is one.
bool reached_by_head(const Kernel& kernel, const Problem& problem, const RowIndex& at);

// Judges output element e (column of O; -1: LSE) and escalates the oracle until its radius is below 2^-10 of the
// bound or the cap (512 bits) is reached. truth, if given, receives the element that decided.
Judgement judge_element(const attn_contract& contract, const Evaluated& row, std::int64_t e, double got,
                        TruthElement* truth = nullptr);

// Whether the problem's formats hold the case's inputs as they are. Printed values hold for the numbers as printed: a
// format that had to round an input is not bound by them.
bool inputs_are_exact(const Problem& problem);

// LSE as the Contract states it: natural or base 2; an empty row as -inf or +inf.
TruthElement stated_lse(const attn_contract& contract, TruthElement natural, bool empty_row);

// Why nothing is decided where a bound is NaN: it is neither for the kernel nor against it.
inline constexpr const char* kBoundIsNaN = "the bound is not a number (a defect of the harness)";

// The account of a check: verdict by precedence, worst finding, counts.
class Tally {
 public:
  // where is called only when the finding is kept.
  template <class Where>
  void add(const Judgement& j, double got, double want, double bound, Where where) {
    if (std::isnan(bound)) return note(Verdict::undecided, kBoundIsNaN);
    count(j);
    if (j.verdict != Verdict::fail) return;
    if (failures_++ == 0 || worse(j)) {
      worst_failure_ = j.ratio;
      result_.finding = Finding{where(), got, want, j.error, bound, ""};
    }
  }
  // Two outputs that must be equal bit for bit. Any NaN equals any other: IEEE 754 leaves open which operand's sign and
  // payload a result gets, and compilers choose by the order of operands.
  template <class Where>
  void same(std::uint64_t got_bits, std::uint64_t want_bits, double got, double want, Where where) {
    ++result_.elements;
    if (got_bits == want_bits || (std::isnan(got) && std::isnan(want))) return;
    verdict_ = Verdict::fail;
    if (failures_++ == 0) result_.finding = Finding{where(), got, want, got - want, 0, "must be the same bits"};
  }
  void fail(std::string where, std::string message, double got = 0, double want = 0);
  void note(Verdict v, std::string reason);  // counts one element
  // Takes over what a check of a part found.
  void absorb(const CheckResult& part);

  bool failed() const { return verdict_ == Verdict::fail; }
  std::int64_t elements() const { return result_.elements; }
  // nothing: the reason to give when not one element could be judged.
  CheckResult finish(std::string nothing) const;

 private:
  void count(const Judgement& j);
  bool worse(const Judgement& j) const { return !(j.ratio <= worst_failure_); }

  CheckResult result_;
  Verdict verdict_ = Verdict::pass;
  std::string undecided_, vacuous_;
  double worst_failure_ = 0;
  std::int64_t failures_ = 0;
};

// "o[b=0,h=1,i=3,e=2]" or "lse[b=0,h=1,i=3]" for e < 0.
std::string place(const RowIndex& at, std::int64_t e);
std::string place(const std::string& tensor, std::int64_t row, std::int64_t e);

// Index into output("o") and output("lse").
std::int64_t o_index(const Problem& p, const RowIndex& at, std::int64_t e);
std::int64_t lse_index(const Problem& p, const RowIndex& at);

// A result for a run that did not come to numbers.
CheckResult stopped(const Execution& execution);

}  // namespace attest
