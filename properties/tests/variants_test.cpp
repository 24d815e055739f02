// Variants: correct kernels that differ. Every law that binds one passes on it, and the errors that their Contracts
// declare are those of their exps.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "properties/check.h"
#include "properties/execute.h"
#include "properties/generate.h"
#include "properties/plugin.h"
#include "properties/variants/exps.h"
#include "properties/variants/flush.h"
#include "properties/variants/variants.h"

namespace attest {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr int kCases = 4;

TEST(Variants, EachPassesEveryLaw) {
  std::map<std::string_view, int> passes;
  for (const Kernel& kernel : variants::variant_kernels())
    for (const Law& law : laws())
      for (int n = 0; n < kCases; ++n) {
        Random random(kSeed, static_cast<std::uint64_t>(n));
        const Case c = generate_case(kernel, law, random, (n + 0.5) / kCases);
        if (!law.why_not(c, kernel).empty()) continue;
        const CheckResult r = check_case(c, kernel, law, LawContext{});
        passes[law.name] += r.outcome == Outcome::pass;
        EXPECT_NE(r.outcome, Outcome::fail)
            << kernel.name << " " << law.name << " seed " << kSeed << ": " << describe(r) << "\n"
            << to_text(c);
      }
  for (const Law& law : laws()) EXPECT_GT(passes[law.name], 0) << law.name << " has no PASS on any variant";
}

TEST(Variants, AreManyAndCoverTheFormats) {
  std::set<std::string> names, formats;
  for (const Kernel& k : variants::variant_kernels()) {
    EXPECT_TRUE(names.insert(k.name).second) << k.name;
    EXPECT_TRUE(k.name.starts_with("variant.")) << k.name;
    EXPECT_EQ(contract_problem(k.abi->contract, k.abi->op), "") << k.name;
    formats.insert(k.name.substr(8, k.name.find('.', 8) - 8));
  }
  EXPECT_GE(names.size(), 16u);
  EXPECT_EQ(formats, (std::set<std::string>{"bf16", "fp16", "fp32", "fp64"}));
}

TEST(Variants, RejectWhatTheyDoNotSupport) {
  for (const Kernel& k : variants::variant_kernels()) {
    attn_problem p = {};
    p.struct_size = sizeof p;
    p.op = k.abi->op == ATTN_OP_MERGE ? ATTN_OP_FORWARD : ATTN_OP_MERGE;
    char why[256] = "";
    EXPECT_EQ(k.abi->supports(&p, why, sizeof why), ATTN_REJECTED) << k.name;
    EXPECT_NE(std::string(why), "") << k.name;
  }
}

// What a variant does differently must be there, or it proves nothing: here, that subnormal outputs are flushed.
TEST(Variants, FlushingFlushes) {
  if (!variants::can_flush) GTEST_SKIP() << "no control of flushing on this processor";
  Case c;
  c.shape.tq = c.shape.tk = 4;
  c.shape.d_v = 8;
  c.dtype = DType::fp32;
  c.values.family = "subnormal";
  for (const Kernel& k : variants::variant_kernels()) {
    if (!k.name.starts_with("variant.fp32.") || k.abi->op != ATTN_OP_FORWARD) continue;
    Problem p(c, formats_for(k));
    ASSERT_EQ(execute(k, p).status, Outcome::pass) << k.name;
    const std::vector<double> o = p.output("o");
    const bool subnormal = std::any_of(o.begin(), o.end(), [](double x) { return x != 0 && std::fabs(x) < 0x1p-126; });
    EXPECT_EQ(subnormal, !k.abi->contract.flushes_subnormals) << k.name;
  }
}

// Largest relative error of f in u of fp32, on every 4093rd float z with |z| in [2^-60, most] and the given sign.
template <class F, class G>
double largest_error(F f, G exact, float sign, float most) {
  double worst = 0;
  for (std::uint32_t bits = 0x21800000;; bits += 4093) {
    const float z = std::bit_cast<float>(bits);
    if (z > most) break;
    const double want = exact(static_cast<double>(sign * z));
    if (want != 0) worst = std::max(worst, std::fabs(static_cast<double>(f(sign * z)) - want) / std::fabs(want));
  }
  return worst * 0x1p24;
}

TEST(Variants, ExpsAndLogsKeepTheirDeclaredErrors) {
  using namespace variants;
  const auto exp = [](double z) { return std::exp(z); };
  const auto exp2 = [](double z) { return std::exp2(z); };
  const auto log = [](double l) { return std::log(l); };
  // Down to where results are below the normal range.
  EXPECT_LE(largest_error([](float z) { return exp_of<Exp::rounded>(z); }, exp, -1, 87), rounded_error_fp32);
  EXPECT_LE(largest_error([](float z) { return exp2_of<Exp::rounded>(z); }, exp2, -1, 126), rounded_error_fp32);
  EXPECT_LE(largest_error([](float z) { return exp_of<Exp::libm>(z); }, exp, -1, 87), libm_error_fp32);
  EXPECT_LE(largest_error([](float z) { return exp2_of<Exp::libm>(z); }, exp2, -1, 126), libm_error_fp32);
  const double cubic = largest_error(cubic_exp2, exp2, -1, 126);
  EXPECT_LE(cubic, cubic_error);
  EXPECT_GT(cubic, 0.99 * cubic_error);
  EXPECT_LE(largest_error([](float l) { return log_of<Exp::rounded>(l); }, log, 1, 1e9f), rounded_error_fp32);
  EXPECT_LE(largest_error([](float l) { return log_of<Exp::libm>(l); }, log, 1, 1e9f), libm_log_error_fp32);
  // Weights of lazy rescaling lie above 1.
  EXPECT_LE(largest_error(cubic_exp2, exp2, 1, 8), cubic_error);
  EXPECT_EQ(cubic_exp2(0), 1);
  EXPECT_TRUE(std::isnan(cubic_exp2(std::nanf(""))));
}

}  // namespace
}  // namespace attest
