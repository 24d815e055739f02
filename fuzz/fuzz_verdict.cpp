// Claim: the verdict is a pure function of (truth, radius, bound, output), whatever bits these are: a NaN where none is
// due fails first; |got - truth| + radius <= bound and no other comparison passes, computed exactly; a larger bound
// never turns PASS into FAIL; the account of a check does not depend on the order of its elements. Bounds of step and
// merge are never negative.
#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/counters.h"
#include "fuzz/target.h"
#include "oracle/verdict.h"
#include "properties/check.h"
#include "properties/evaluate.h"

namespace {

using namespace attest;
using fuzz::met;
using fuzz::Situation;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Element {
  TruthElement truth;
  ElementBound bound;
  double got = 0;
};

[[noreturn]] void die(const char* what, const Element& e) {
  std::fprintf(stderr, "fuzz_verdict: %s: kind %d hi %a lo %a radius %a bound %a ill-conditioned %d got %a\n", what,
               static_cast<int>(e.truth.kind), e.truth.hi, e.truth.lo, e.truth.radius, e.bound.deterministic,
               e.bound.ill_conditioned, e.got);
  std::abort();
}

// Any bits, or a number that a decision hangs on.
double read_number(fuzz::Bytes& bytes) {
  constexpr double special[] = {0.0, 1.0, -0.0, kInfinity, -kInfinity, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023};
  const std::uint8_t choice = bytes.byte();
  if (choice < 8) return special[choice];
  if (choice == 8) return std::numeric_limits<double>::quiet_NaN();
  if (choice < 128) return std::ldexp(static_cast<double>(bytes.word()) - 32768, static_cast<int>(choice) - 64);
  return std::bit_cast<double>(bytes.quad());
}

Element read_element(fuzz::Bytes& bytes) {
  Element e;
  const std::uint8_t kind = bytes.byte();
  e.truth.kind = static_cast<TruthKind>(kind < 160 ? 0 : kind % 5);  // finite, mostly
  e.truth.hi = read_number(bytes);
  e.truth.lo = read_number(bytes);
  e.truth.radius = std::fabs(read_number(bytes));
  e.bound.deterministic = std::fabs(read_number(bytes));
  const std::uint8_t how = bytes.byte();
  e.bound.ill_conditioned = how & 128;
  const double edge = e.truth.hi + (how & 64 ? -1 : 1) * (e.bound.deterministic - e.truth.radius) + e.truth.lo;
  switch (how % 5) {  // where the decision turns
    case 0:
      e.got = read_number(bytes);
      break;
    case 1:
      e.got = edge;
      break;
    case 2:
      e.got = std::nextafter(edge, kInfinity);
      break;
    case 3:
      e.got = std::nextafter(edge, -kInfinity);
      break;
    default:
      e.got = e.truth.hi;
  }
  return e;
}

// A finite double in units of 2^-1074, exact.
using Integer = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<
    2304, 2304, boost::multiprecision::signed_magnitude, boost::multiprecision::unchecked, void>>;
Integer exact(double x) {
  int exponent = 0;
  const double half = std::frexp(x, &exponent);
  const auto significand = static_cast<std::int64_t>(std::ldexp(half, 53));
  const int shift = exponent - 53 + 1074;
  Integer n = significand < 0 ? -significand : significand;
  if (shift >= 0)
    n <<= static_cast<unsigned>(shift);
  else
    n >>= static_cast<unsigned>(-shift);  // only zeros go: a double has no smaller part
  return significand < 0 ? Integer(-n) : n;
}

Verdict by_definition(const Element& e) {
  const double bound = e.bound.deterministic;
  if (bound == kInfinity) return Verdict::vacuous;
  if ((e.truth.kind == TruthKind::nan) != static_cast<bool>(std::isnan(e.got))) return Verdict::fail;
  if (e.truth.kind == TruthKind::nan) return Verdict::pass;
  if (e.truth.kind == TruthKind::neg_inf) return e.got == -kInfinity ? Verdict::pass : Verdict::fail;
  if (e.truth.kind == TruthKind::pos_inf) return e.got == kInfinity ? Verdict::pass : Verdict::fail;
  if (e.truth.kind == TruthKind::zero) return e.got == 0 ? Verdict::pass : Verdict::fail;
  if (!std::isfinite(e.got)) return Verdict::fail;
  if (!std::isfinite(e.truth.hi) || !std::isfinite(e.truth.lo) || !std::isfinite(e.truth.radius) || std::isnan(bound))
    return Verdict::undecided;
  const Integer difference = exact(e.got) - exact(e.truth.hi) - exact(e.truth.lo);
  const Integer error = difference < 0 ? Integer(-difference) : difference;
  if (error + exact(e.truth.radius) <= exact(bound)) return e.bound.ill_conditioned ? Verdict::vacuous : Verdict::pass;
  return error - exact(e.truth.radius) > exact(bound) ? Verdict::fail : Verdict::undecided;
}

void check_element(const Element& e, double other_bound) {
  const Judgement j = judge(e.truth, e.bound, e.got);
  if (j.verdict != by_definition(e)) die("not the verdict of the definition", e);
  if (j.verdict == Verdict::pass && std::isnan(j.ratio)) die("PASS with a ratio that is no number", e);
  // The ratio is for people: it holds for truths whose parts do not overlap, as the oracle's do not.
  const bool parted = e.truth.hi + e.truth.lo == e.truth.hi;
  const bool held = j.verdict == Verdict::pass && e.truth.kind == TruthKind::finite && parted;
  if (held && !(j.ratio <= 1 + 0x1p-40)) die("PASS with error/bound above 1", e);
  Element larger = e;
  larger.bound.deterministic = std::max(e.bound.deterministic, other_bound);  // a NaN bound stays
  const Verdict with_larger = judge(larger.truth, larger.bound, larger.got).verdict;
  if (j.verdict == Verdict::pass && with_larger != Verdict::pass && with_larger != Verdict::vacuous)
    die("a larger bound takes PASS away", larger);
  if (with_larger == Verdict::fail && j.verdict != Verdict::fail && !std::isnan(e.bound.deterministic))
    die("a larger bound makes FAIL", larger);
  met(Situation::verdict, 8 * static_cast<int>(e.truth.kind) + static_cast<int>(j.verdict));
}

CheckResult account(const std::vector<Element>& elements) {
  Tally tally;
  for (const Element& e : elements)
    tally.add(judge(e.truth, e.bound, e.got), e.got, e.truth.hi, e.bound.deterministic, [] { return "o"; });
  return tally.finish("");
}

void check_order(std::vector<Element> elements) {
  if (elements.empty()) return;
  const CheckResult one = account(elements);
  std::reverse(elements.begin(), elements.end());
  const CheckResult other = account(elements);
  const bool same = one.outcome == other.outcome && one.worst_ratio == other.worst_ratio &&
                    one.elements == other.elements && one.vacuous_elements == other.vacuous_elements &&
                    one.undecided_elements == other.undecided_elements;
  if (!same) die("the account depends on the order of elements", elements.front());
  met(Situation::verdict, 64 + static_cast<int>(one.outcome));
}

const std::vector<attn_contract>& contracts(std::int32_t op) {
  static const auto of = [](std::int32_t wanted) {
    std::vector<attn_contract> out;
    for (const Kernel& k : built_in_kernels())
      if (k.abi->op == wanted) out.push_back(k.abi->contract);
    return out;
  };
  static const std::vector<attn_contract> step = of(ATTN_OP_STEP), merge = of(ATTN_OP_MERGE);
  return op == ATTN_OP_STEP ? step : merge;
}

void check_bound(double bound, const char* what) {
  if (!(bound < 0)) return;
  std::fprintf(stderr, "fuzz_verdict: a bound of %s is negative: %a\n", what, bound);
  std::abort();
}

void check_state(const StateBound& s, const char* what) {
  check_bound(s.m, what);
  check_bound(s.l, what);
  for (const double x : s.acc) check_bound(x, what);
}

void check_step_bound(fuzz::Bytes& bytes) {
  const auto& all = contracts(ATTN_OP_STEP);
  const double m = read_number(bytes), l = std::fabs(read_number(bytes));
  const std::vector<double> acc{read_number(bytes), read_number(bytes)};
  StepBound bound(all[bytes.index(all.size())], m, l, acc);
  for (std::int64_t blocks = bytes.between(0, 3); blocks > 0; --blocks) {
    std::vector<double> scores, v;
    std::vector<const double*> rows;
    const std::int64_t keys = bytes.between(0, 4);
    for (std::int64_t j = 0; j < keys; ++j) scores.push_back(read_number(bytes));
    for (std::int64_t n = 0; n < 2 * keys; ++n) v.push_back(read_number(bytes));
    for (std::int64_t j = 0; j < keys; ++j) rows.push_back(v.data() + 2 * j);
    bound.fold(scores, rows);
  }
  check_state(bound.state(), "a step");
  for (const double x : bound.o()) check_bound(x, "O of a step");
  check_bound(bound.lse(), "LSE of a step");
}

void check_merge_bound(fuzz::Bytes& bytes) {
  const auto& all = contracts(ATTN_OP_MERGE);
  const attn_contract& contract = all[bytes.index(all.size())];
  const auto kind = static_cast<StateKind>(bytes.between(0, 2));
  const bool with_acc = kind != StateKind::ml;
  double acc[4];
  const auto side = [&](double* at) {
    MergeSide s{kind, read_number(bytes), std::fabs(read_number(bytes)), {}, {}};
    at[0] = read_number(bytes), at[1] = read_number(bytes);
    s.error.m = std::fabs(read_number(bytes));
    s.error.l = std::fabs(read_number(bytes));
    if (with_acc) s.acc = {at, 2}, s.error.acc = {std::fabs(read_number(bytes)), std::fabs(read_number(bytes))};
    return s;
  };
  const MergeSide a = side(acc), b = side(acc + 2);
  check_state(merge_bound(contract, a, b), "a merge");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ++fuzz::tally.inputs;
  fuzz::Bytes bytes({data, size});
  const std::int64_t what = bytes.between(0, 7);
  if (what == 6) check_step_bound(bytes);
  if (what == 7) check_merge_bound(bytes);
  if (what < 6) {
    std::vector<Element> elements;
    for (std::int64_t n = bytes.between(1, 4); n > 0; --n) elements.push_back(read_element(bytes));
    const double other = std::fabs(read_number(bytes));
    for (const Element& e : elements) check_element(e, other);
    check_order(std::move(elements));
  }
  ++fuzz::tally.accepted;
  return 0;
}
