#include "reports/tool/calibrate_judge.h"

#include <cmath>
#include <set>
#include <utility>

#include "reports/tool/calibrate_claims.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using cal::Function;

// The fp64 reference is within 2 of its ulps: so much, in u, may an error be larger than it was measured.
constexpr double doubt = 0x1p-27;
constexpr const char* ptx = "PTX ISA 9.1";
constexpr const char* guide = "CUDA programming guide";

std::string number(double u) { return text("%.6f u", u); }

bool any(const attn_contract&) { return true; }

std::string place(Function f, const cal::Extreme& e) {
  return text("%s(%08x) = %08x", std::string(name(f)).c_str(), e.input, e.output);
}

// The larger of the two signs.
cal::Extreme relative(const FunctionFacts& facts) {
  const cal::Tally all = facts.total();
  return all.above.size > all.below.size ? all.above : all.below;
}

constexpr Function exps[] = {Function::exp2_flushed, Function::exp2_gradual};

// The largest error of weights and rescale factors, whose arguments are not above 0; signs are told apart by the sweep.
cal::Extreme of_negative(const FunctionFacts& facts) {
  cal::Extreme worst;
  for (std::size_t binade = facts.binades.size() / 2; binade < facts.binades.size(); ++binade) {
    keep_larger(worst, facts.binades[binade].above);
    keep_larger(worst, facts.binades[binade].below);
  }
  return worst;
}

bool by_exp2(const attn_contract& k) { return k.exp_form == ATTN_EXP2_FMA; }
bool by_difference(const attn_contract& k) { return !by_exp2(k); }

Constant exp2_constant(const Calibration& c, Kernels kernels, const char* field, double attn_contract::*claimed) {
  cal::Extreme worst;
  Function at = exps[0];
  for (Function f : exps)
    if (const cal::Extreme e = relative(c.of(f)); e.size > worst.size) worst = e, at = f;
  Constant constant{field,
                    "5 u: 2 ulp from the rounded result",
                    std::string(ptx) + ", ex2.approx",
                    number(worst.size),
                    place(at, worst),
                    {},
                    {}};
  collect_claims(
      constant, kernels, by_exp2, [&](const attn_contract& k) { return number(k.*claimed); },
      [&](const attn_contract& k) { return k.*claimed >= worst.size + doubt; }, "raise it in impl/contracts.cpp");
  return constant;
}

// (1 + a u)(1 + b u)(1 + u) - 1 in u: a weight, the factor of a part that is merged, and their product.
double merged(double a, double b) {
  const double u = 0x1p-24;
  return ((1 + a * u) * (1 + b * u) * (1 + u) - 1) / u;
}

// Steps weigh by expf and merge the parts of a row by exp_of; merges weigh by exp_of.
Constant exp_constant(const Calibration& c, Kernels kernels) {
  const cal::Extreme weight = of_negative(c.of(Function::exp)), shared = of_negative(c.of(Function::exp_shared));
  const double step = merged(weight.size, shared.size);
  Constant constant{"exp_error, by expf",
                    "5 u: expf 2 ulp; exp_of 1.40918 u",
                    std::string(guide) + "; impl/core/exp.h",
                    "expf " + number(weight.size) + ", exp_of " + number(shared.size) + "; of a step " + number(step),
                    place(Function::exp, weight) + ", " + place(Function::exp_shared, shared),
                    {},
                    {}};
  collect_claims(
      constant, kernels, by_difference, [](const attn_contract& k) { return number(k.exp_error); },
      [&](const attn_contract& k) {
        return k.exp_error >= (k.algorithm == ATTN_ALG_STEP ? step : shared.size) + doubt;
      },
      "raise it in impl/contracts.cpp");
  return constant;
}

Constant rescale_constant(const Calibration& c, Kernels kernels) {
  const cal::Extreme shared = of_negative(c.of(Function::exp_shared));
  Constant constant{"rescale_exp_error, by exp_of",
                    "1.40918 u",
                    "impl/core/exp.h",
                    "exp_of " + number(shared.size),
                    place(Function::exp_shared, shared),
                    {},
                    {}};
  collect_claims(
      constant, kernels, by_difference, [](const attn_contract& k) { return number(k.rescale_exp_error); },
      [&](const attn_contract& k) { return k.rescale_exp_error >= shared.size + doubt; },
      "raise it in impl/contracts.cpp");
  return constant;
}

Constant exp_of_zero(const Calibration& c, Kernels kernels) {
  bool exact = true;
  for (Function f : {Function::exp2_flushed, Function::exp2_gradual, Function::exp, Function::exp_shared})
    for (std::size_t i : {0u, 1u}) exact &= c.of(f).special[i] == 0x3f800000u;
  Constant constant{"exp(0)", "1", ptx, exact ? "1" : "not 1", "", {}, {}};
  collect_claims(
      constant, kernels, any, [](const attn_contract&) { return "1"; }, [&](const attn_contract&) { return exact; },
      "the bounds count on it");
  return constant;
}

Constant classes(const Calibration& c, Kernels kernels) {
  std::uint64_t wrong = 0;
  for (Function f : {Function::exp2_flushed, Function::exp2_gradual, Function::exp, Function::exp_shared, Function::log,
                     Function::reciprocal})
    wrong += c.of(f).total().misclassified;
  Constant constant{"0, inf, NaN",
                    "as the exact result",
                    std::string(ptx) + " and " + guide,
                    text("%llu inputs differ", static_cast<unsigned long long>(wrong)),
                    "",
                    {},
                    {}};
  collect_claims(
      constant, kernels, any, [](const attn_contract&) { return "none differs"; },
      [&](const attn_contract&) { return wrong == 0; }, "a result would be NaN or infinite where it should not be");
  return constant;
}

Constant flushing(const Calibration& c, Kernels kernels) {
  const cal::Tally t = c.of(Function::exp2_flushed).total();
  const bool flushes = t.small_to_zero > 0;
  Constant constant{"flushes_subnormals",
                    "1 for .ftz",
                    ptx,
                    text("%d: %llu of %llu results below 2^-126 are 0", flushes ? 1 : 0,
                         static_cast<unsigned long long>(t.small_to_zero), static_cast<unsigned long long>(t.small)),
                    "",
                    {},
                    {}};
  collect_claims(
      constant, kernels, by_exp2, [](const attn_contract& k) { return text("%d", k.flushes_subnormals); },
      [&](const attn_contract& k) { return k.flushes_subnormals != 0 || !flushes; }, "set it in impl/contracts.cpp");
  return constant;
}

// The sweep that spared this Contract's log_absolute.
const LogFacts* log_of(const Calibration& c, const attn_contract& k) {
  for (const LogFacts& l : c.logs)
    if (l.spared == k.log_absolute) return &l;
  return nullptr;
}

Constant logarithm(const Calibration& c, Kernels kernels) {
  const cal::Extreme worst = relative(c.of(Function::log));
  Constant constant{"log_relative",
                    "1 ulp: 2 u",
                    std::string(guide) + ", logf",
                    number(worst.size),
                    place(Function::log, worst),
                    {},
                    {}};
  collect_claims(
      constant, kernels, any,
      [](const attn_contract& k) {
        return number(k.log_relative) + (k.log_absolute > 0 ? text(", log_absolute %.6f u", k.log_absolute) : "");
      },
      [&](const attn_contract& k) {
        const LogFacts* l = log_of(c, k);
        return l && k.log_relative >= l->relative.size + doubt;
      },
      "raise it in impl/contracts.cpp");
  return constant;
}

Constant division(const Calibration& c, Kernels kernels) {
  const cal::Extreme r = relative(c.of(Function::reciprocal));
  // (1 + r u)(1 + p u) - 1 in u, where p u = u / (1 + u) is the most that rounding to nearest takes from a product.
  const double u = 0x1p-24, p = 1 / (1 + u), both = r.size + p + r.size * p * u;
  // A merge divides as IEEE 754 does, a step not at all; the others multiply with the reciprocal.
  const auto multiplies = [](const attn_contract& k) { return k.algorithm <= ATTN_ALG_SPLIT; };
  Constant constant{"division_error",
                    "2 u: 1/x rounded, a product rounded",
                    "IEEE 754; " + std::string(guide) + ", __frcp_rn",
                    number(both),
                    text("%llu reciprocals not rounded correctly, worst %s",
                         static_cast<unsigned long long>(c.of(Function::reciprocal).total().unrounded),
                         place(Function::reciprocal, r).c_str()),
                    {},
                    {}};
  collect_claims(
      constant, kernels, multiplies, [](const attn_contract& k) { return number(k.division_error); },
      [&](const attn_contract& k) { return k.division_error >= both + doubt; }, "raise it in impl/contracts.cpp");
  return constant;
}

bool rounds_p(const attn_contract& k) { return k.p_dtype == ATTN_FP16 || k.p_dtype == ATTN_BF16; }

Constant rounding(const Calibration& c, Kernels kernels) {
  Constant constant{
      "p_dtype",
      "nearest even",
      std::string(ptx) + ", cvt.rn",
      text("fp16 %llu, bf16 %llu of 2 x 2^32 not the nearest even", static_cast<unsigned long long>(c.misrounded_fp16),
           static_cast<unsigned long long>(c.misrounded_bf16)),
      "",
      {},
      {}};
  collect_claims(
      constant, kernels, rounds_p, [](const attn_contract& k) { return k.p_dtype == ATTN_FP16 ? "fp16" : "bf16"; },
      [&](const attn_contract& k) { return (k.p_dtype == ATTN_FP16 ? c.misrounded_fp16 : c.misrounded_bf16) == 0; },
      "the bounds count half an ulp for it");
  return constant;
}

Constant reference(const Calibration& c) {
  Constant constant{"reference",
                    "1 ulp of fp64",
                    guide,
                    text("%.1e u", c.reference.worst),
                    text("%lld worst inputs again at 200 bits", static_cast<long long>(c.reference.inputs)),
                    {},
                    {}};
  if (!(c.reference.worst <= doubt))
    constant.faults.push_back(
        text("the fp64 reference of the device is off by %.3e u (%s): what was measured with it "
             "is not to be trusted",
             c.reference.worst, c.reference.where.c_str()));
  return constant;
}

}  // namespace

std::vector<double> log_absolutes(Kernels kernels) {
  std::set<double> all;
  for (const attn_kernel& k : kernels) all.insert(k.contract.log_absolute);
  return {all.begin(), all.end()};
}

std::vector<Constant> judge(const Calibration& c, Kernels kernels) {
  std::vector<Constant> all = {exp2_constant(c, kernels, "exp_error", &attn_contract::exp_error),
                               exp2_constant(c, kernels, "rescale_exp_error", &attn_contract::rescale_exp_error),
                               exp_constant(c, kernels),
                               rescale_constant(c, kernels),
                               exp_of_zero(c, kernels),
                               flushing(c, kernels),
                               logarithm(c, kernels),
                               division(c, kernels),
                               classes(c, kernels),
                               rounding(c, kernels)};
  for (Constant& k : accumulation_constants(c, kernels)) all.push_back(std::move(k));
  all.push_back(reference(c));
  return all;
}

}  // namespace attest
