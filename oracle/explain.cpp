// The one line that a reader of a failure sees. Kept apart from the verdict, which never looks at it.
#include <cmath>
#include <cstdio>
#include <string>

#include "oracle/arithmetic.h"
#include "oracle/verdict.h"

namespace attest {
namespace {

std::string_view format_name(DType format) {
  switch (format) {
    case DType::fp64:
      return "fp64";
    case DType::fp32:
      return "fp32";
    case DType::fp16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::any:
      break;
  }
  return "any";
}

std::string print(const char* pattern, double x) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, x);
  return text;
}

// Hex float with the decimal beside it: enough digits to give the format's value back.
std::string both(double x, DType format) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  const int digits = format == DType::fp64 ? 17 : format == DType::fp32 ? 9 : 5;
  char decimal[64];
  std::snprintf(decimal, sizeof decimal, "%.*g", digits, x);
  return print("%a", x) + " (" + decimal + ")";
}

std::string wanted(const TruthElement& truth) {
  switch (truth.kind) {
    case TruthKind::zero:
      return "0 exactly";
    case TruthKind::neg_inf:
      return "-inf";
    case TruthKind::pos_inf:
      return "inf";
    case TruthKind::nan:
      return "nan";
    case TruthKind::finite:
      break;
  }
  return both(truth.hi + truth.lo, DType::fp64) + " +- " + print("%.3g", truth.radius);
}

}  // namespace

std::string explain(const TruthElement& truth, const ElementBound& bound, double got, DType format) {
  const Judgement j = judge(truth, bound, got);
  std::string line = std::string(name(j.verdict)) + ": got " + both(got, format) + ", want " + wanted(truth);
  if (std::isinf(bound.deterministic)) {
    line += "; the Contract admits anything here (a declared format may overflow)";
  } else if (std::isnan(j.error)) {
    line += "; the class differs";
  } else if (truth.kind == TruthKind::finite) {
    const DType shown = format == DType::any ? DType::fp64 : format;
    const double ulp = 2 * half_ulp(shown, truth.hi + truth.lo);
    line += "; error " + print("%.4g", j.error) + ", bound " + print("%.4g", bound.deterministic) + ", error/bound " +
            print("%.4g", j.ratio) + ", " + print("%.4g", j.error / ulp) + " ulps of " +
            std::string(format_name(shown));
    if (bound.ill_conditioned) line += "; ill-conditioned: only values outside of the box fail";
  }
  return line;
}

}  // namespace attest
