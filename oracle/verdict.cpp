// Verdict: exact comparison of |got - truth| with the bound. The explanation lives in explain.cpp.
#include "oracle/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr int sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// A nonoverlapping expansion of the terms (Shewchuk 1997): components of increasing size with the same sum. Two-sums
// are exact with gradual underflow, as long as nothing overflows.
template <std::size_t n>
std::array<double, n> expand(const std::array<double, n>& terms) {
  std::array<double, n> expansion{};
  for (std::size_t count = 0; count < n; ++count) {
    double q = terms[count];
    for (std::size_t i = 0; i < count; ++i) {
      const double x = expansion[i], sum = q + x, part = sum - q;
      expansion[i] = (q - (sum - part)) + (x - part);
      q = sum;
    }
    expansion[count] = q;
  }
  return expansion;
}

// Sign of a sum of finite doubles, exact: the last nonzero component carries it.
template <std::size_t n>
int sign_of_sum(std::array<double, n> terms) {
  double largest = 0, rest = 0;
  for (const double x : terms) largest = std::max(largest, std::fabs(x));
  const bool scaled = largest > 0x1p1000;  // sums could overflow
  for (double& x : terms) {
    if (!scaled) break;
    // What scaling takes from the smallest terms: less than 2^-1058 each, so that their sum is exact.
    const double less = x * 0x1p-16;
    rest += x - less * 0x1p16;
    x = less;
  }
  const std::array<double, n> expansion = expand(terms);
  double sum = 0;
  for (std::size_t i = n; i-- > 0;) {
    if (std::fabs(expansion[i]) > 0x1p-1030 || (!scaled && expansion[i] != 0)) return sign(expansion[i]);
    sum += expansion[i];  // of multiples of 2^-1074 this small: exact
  }
  return sign(sum * 0x1p16 + rest);
}

Judgement mismatch() { return {Verdict::fail, not_a_number, infinity}; }
Judgement match() { return {Verdict::pass, 0, 0}; }

double error_of(const TruthElement& truth, double got) {
  if (!std::isfinite(got - truth.hi)) return infinity;
  const double difference = got - truth.hi, part = difference - got;
  const double tail = (got - (difference - part)) - (truth.hi + part);
  return std::fabs(difference + (tail - truth.lo));
}

double ratio_of(double error, double bound) { return error == 0 ? 0 : error / bound; }

// e + r <= B passes, e - r > B fails, with e the exact distance; between them the oracle has to look closer.
Verdict decide(const TruthElement& truth, double bound, double got) {
  const int side = sign_of_sum<3>({got, -truth.hi, -truth.lo});
  const double s = side < 0 ? -1 : 1;
  const double e1 = s * got, e2 = -s * truth.hi, e3 = -s * truth.lo;
  if (!std::isfinite(truth.radius)) return Verdict::undecided;
  if (sign_of_sum<5>({e1, e2, e3, truth.radius, -bound}) <= 0) return Verdict::pass;
  if (sign_of_sum<5>({e1, e2, e3, -truth.radius, -bound}) > 0) return Verdict::fail;
  return Verdict::undecided;
}

}  // namespace

std::string_view name(Verdict v) {
  switch (v) {
    case Verdict::pass:
      return "PASS";
    case Verdict::vacuous:
      return "VACUOUS";
    case Verdict::undecided:
      return "UNDECIDED";
    case Verdict::fail:
      break;
  }
  return "FAIL";
}

std::string_view name(Outcome o) {
  switch (o) {
    case Outcome::pass:
      return "PASS";
    case Outcome::vacuous:
      return "VACUOUS";
    case Outcome::undecided:
      return "UNDECIDED";
    case Outcome::rejected:
      return "REJECTED";
    case Outcome::not_run:
      return "NOT_RUN";
    case Outcome::fail:
      break;
  }
  return "FAIL";
}

Outcome outcome_of(Verdict v) {
  switch (v) {
    case Verdict::pass:
      return Outcome::pass;
    case Verdict::vacuous:
      return Outcome::vacuous;
    case Verdict::undecided:
      return Outcome::undecided;
    case Verdict::fail:
      break;
  }
  return Outcome::fail;
}

Verdict worst(Verdict a, Verdict b) { return a > b ? a : b; }

Judgement judge(const TruthElement& truth, double bound, double got) {
  if (bound == infinity) return {Verdict::vacuous, not_a_number, 0};
  const bool nan_due = truth.kind == TruthKind::nan;
  if (std::isnan(got)) return nan_due ? match() : mismatch();
  if (nan_due) return mismatch();
  switch (truth.kind) {
    case TruthKind::neg_inf:
      return got == -infinity ? match() : mismatch();
    case TruthKind::pos_inf:
      return got == infinity ? match() : mismatch();
    case TruthKind::zero:
      if (got == 0) return match();
      return {Verdict::fail, std::isfinite(got) ? std::fabs(got) : not_a_number, infinity};
    default:
      break;
  }
  if (!std::isfinite(got)) return mismatch();
  // An oracle or a bound that is no number decides nothing, and never in favour of the kernel.
  if (!std::isfinite(truth.hi) || !std::isfinite(truth.lo) || std::isnan(truth.radius) || std::isnan(bound)) {
    return {Verdict::undecided, not_a_number, infinity};
  }
  const double error = error_of(truth, got);
  return {decide(truth, bound, got), error, ratio_of(error, bound)};
}

Judgement judge(const TruthElement& truth, const ElementBound& bound, double got) {
  Judgement j = judge(truth, bound.deterministic, got);
  // Held, but the bound is close to the hull of V: that says little about the kernel.
  if (bound.ill_conditioned && j.verdict == Verdict::pass && truth.kind == TruthKind::finite) {
    j.verdict = Verdict::vacuous;
  }
  return j;
}

}  // namespace attest
