// Calibration without a device: verdicts over Contracts, reports, and what the tool says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "impl/registry.h"
#include "reports/tests/run_tool.h"
#include "reports/tool/calibrate_reference.h"
#include "reports/tool/calibrate_report.h"
#include "reports/tool/calibrate_tables.h"

namespace attest::testing {
namespace {

using attn::bits_as;

constexpr std::uint32_t one = 0x3f800000u;

// What an H200 gave, as far as verdicts look.
Calibration plausible() {
  Calibration c;
  c.device = {"Test Device", "1.2.3", 9, 0, 132, 13000, 13000, 90, "nvcc 13.0.88"};
  c.seed = 1, c.dots = 1024;
  for (cal::Function f : cal::functions) {
    FunctionFacts facts;
    facts.function = f;
    facts.special.assign(special_inputs.size(), one);
    cal::Tally& t = facts.binades[123];
    const bool is_exp = f <= cal::Function::exp2_gradual;
    const double size = is_exp ? 2.44 : f == cal::Function::log ? 1.34 : f == cal::Function::reciprocal ? 0.99999 : 1.6;
    t.results = 1000;
    t.above = {size, 0x3d8005d0u, 0x3f858ab2u};
    t.below = {size / 2, 0xbf7b000cu, 0x3f000000u};
    if (is_exp) t.small = t.small_to_zero = 25845759;
    if (f == cal::Function::exp) facts.binades[300].below = {2.5, 0xc15e6398u, 0x35800001u};
    if (f == cal::Function::exp_shared) facts.binades[300].above = {1.409173, 0xc0bc0000u, 0x3b387fffu};
    c.functions.push_back(facts);
  }
  c.logs = {{0, {1.34, 0x3ebbf6c0u, 0xbf800000u}}};
  for (attn::CudaFormat format : {attn::CudaFormat::fp16, attn::CudaFormat::bf16})
    for (cal::Instruction i : cal::instructions) {
      InstructionFacts& facts = c.instructions.emplace_back();
      facts.format = format, facts.instruction = i, facts.searched = 100, facts.matching = 1;
      facts.search = {{{16, 25}, 0}, {{8, 24}, 30}};
      for (ChainFacts& chain : facts.chains) chain.dots = 1000;
    }
  c.reference = {100, 1e-9, "ex2 somewhere"};
  return c;
}

std::vector<attn_kernel> ours() { return {attn::cuda_kernels().begin(), attn::cuda_kernels().end()}; }

const Constant& find(const std::vector<Constant>& all, const std::string& name) {
  for (const Constant& c : all)
    if (c.name == name) return c;
  throw std::logic_error(name + " is no constant");
}

// Only this constant fails, and says so with these words.
void expect_only(const std::vector<Constant>& all, const std::string& failing, const std::string& words) {
  for (const Constant& c : all) EXPECT_EQ(c.holds(), c.name != failing) << c.name;
  ASSERT_FALSE(find(all, failing).faults.empty()) << failing;
  EXPECT_NE(find(all, failing).faults[0].find(words), std::string::npos) << find(all, failing).faults[0];
  EXPECT_EQ(verdict_of(all), "fail");
}

TEST(Calibrate, OurContractsHold) {
  const auto all = judge(plausible(), ours());
  for (const Constant& c : all) EXPECT_TRUE(c.holds()) << c.name << (c.faults.empty() ? "" : c.faults[0]);
  EXPECT_EQ(verdict_of(all), "pass");
  std::size_t claims = 0;
  for (const char* name : {"exp_error", "exp_error, by expf"})
    for (const Claim& claim : find(all, name).claims) claims += claim.kernels.size();
  EXPECT_EQ(claims, ours().size()) << "every kernel has its say";
}

TEST(Calibrate, AClaimBelowTheMeasuredValueFails) {
  const auto judged = [](const std::function<void(attn_contract&)>& change) {
    std::vector<attn_kernel> kernels = ours();
    for (attn_kernel& k : kernels)
      if (std::string(k.name) == "cuda.fa2.bf16.p16") change(k.contract);
    return judge(plausible(), kernels);
  };
  expect_only(judged([](attn_contract& k) { k.exp_error = 2.4399; }), "exp_error",
              "cuda.fa2.bf16.p16 claims exp_error 2.439900 u, measured is 2.440000 u (ex2.approx.ftz.f32(3d8005d0)");
  expect_only(judged([](attn_contract& k) { k.exp_error = std::numeric_limits<double>::quiet_NaN(); }), "exp_error",
              "");
  expect_only(judged([](attn_contract& k) { k.rescale_exp_error = 0; }), "rescale_exp_error",
              "claims rescale_exp_error");
  expect_only(judged([](attn_contract& k) { k.log_relative = 1; }), "log_relative", "measured is 1.340000 u");
  expect_only(judged([](attn_contract& k) { k.division_error = 1; }), "division_error", "claims division_error 1.0");
  expect_only(judged([](attn_contract& k) { k.flushes_subnormals = 0; }), "flushes_subnormals", "results below 2^-126");
  expect_only(judged([](attn_contract& k) { k.mma_terms = 32; }), "mma_terms", "claims mma_terms 32, measured is 16");
  expect_only(judged([](attn_contract& k) { k.mma_fraction_bits = 26; }), "mma_fraction_bits", "measured is 25");
  expect_only(judged([](attn_contract& k) { k.mma_terms = 0; }), "mma_terms", "claims mma_terms 0");
  // Less than measured is a promise that is kept.
  EXPECT_EQ(verdict_of(judged([](attn_contract& k) { k.mma_terms = 8, k.mma_fraction_bits = 24; })), "pass");
  // Another form of exp is held to what that form calls.
  const auto by_expf = [&](double exp_error, double rescale) {
    return judged([=](attn_contract& k) {
      k.exp_form = ATTN_EXP_DIFFERENCE, k.algorithm = ATTN_ALG_STEP;
      k.exp_error = exp_error, k.rescale_exp_error = rescale;
    });
  };
  EXPECT_EQ(verdict_of(by_expf(4.9092, 1.4092)), "pass");
  expect_only(by_expf(4.9091, 1.4092), "exp_error, by expf", "claims exp_error, by expf 4.909100 u");
  expect_only(by_expf(4.9092, 1.4091), "rescale_exp_error, by exp_of", "measured is exp_of 1.409173 u");
}

TEST(Calibrate, AWorseDeviceFails) {
  const auto judged = [](const std::function<void(Calibration&)>& change) {
    Calibration c = plausible();
    change(c);
    return judge(c, ours());
  };
  const auto facts = [](Calibration& c, cal::Function f) -> FunctionFacts& {
    return c.functions[static_cast<std::size_t>(f)];
  };
  const auto worse = judged([&](Calibration& c) {
    facts(c, cal::Function::exp2_gradual).binades[300].below = {2.5, 0xc0000000u, 0x3e800001u};
  });
  EXPECT_FALSE(find(worse, "exp_error").holds());
  EXPECT_FALSE(find(worse, "rescale_exp_error").holds());
  EXPECT_NE(find(worse, "exp_error").faults[0].find("exp2f(c0000000) = 3e800001"), std::string::npos);
  expect_only(judged([&](Calibration& c) { facts(c, cal::Function::exp2_flushed).special[1] = one - 1; }), "exp(0)",
              "the bounds count on it");
  expect_only(judged([&](Calibration& c) { facts(c, cal::Function::log).binades[0].misclassified = 1; }), "0, inf, NaN",
              "1 inputs differ");
  expect_only(judged([&](Calibration& c) { facts(c, cal::Function::reciprocal).binades[7].above.size = 1.6; }),
              "division_error", "measured is 2.600000 u");
  expect_only(judged([](Calibration& c) { c.misrounded_bf16 = 3; }), "p_dtype", "bf16 3 of 2 x 2^32");
  expect_only(judged([](Calibration& c) { c.logs.clear(); }), "log_relative", "log_relative");
  expect_only(judged([](Calibration& c) { c.reference.worst = 1e-3; }), "reference", "not to be trusted");
  expect_only(judged([](Calibration& c) { c.reference.worst = std::numeric_limits<double>::quiet_NaN(); }), "reference",
              "");
}

TEST(Calibrate, AModelThatMissesOrIsNotAloneFails) {
  const auto judged = [](const std::function<void(InstructionFacts&)>& change) {
    Calibration c = plausible();
    change(c.instructions[7]);  // bf16, a in registers
    return judge(c, ours());
  };
  for (const auto& change : std::initializer_list<std::function<void(InstructionFacts&)>>{
           [](InstructionFacts& i) { i.matching = 2; }, [](InstructionFacts& i) { i.matching = 0; },
           [](InstructionFacts& i) { i.chains[2].misses = 1; },
           [](InstructionFacts& i) { i.model.align = cal::Cut::down; }}) {
    const auto all = judged(change);
    for (const char* name : {"mma_terms", "mma_fraction_bits"}) {
      EXPECT_FALSE(find(all, name).holds()) << name;
      EXPECT_NE(find(all, name).measured.find("fp16 "), std::string::npos);
      EXPECT_NE(find(all, name).measured.find("bf16 unknown"), std::string::npos);
    }
  }
  const auto fewer = judged([](InstructionFacts& i) { i.model = {8, 25}; });
  EXPECT_FALSE(find(fewer, "mma_terms").holds());
  EXPECT_TRUE(find(fewer, "mma_fraction_bits").holds());
  // What a device does not have says nothing of it.
  EXPECT_EQ(verdict_of(judged([](InstructionFacts& i) { i.present = false, i.matching = 0; })), "pass");
}

TEST(Calibrate, ReportsSayWhatWasMeasured) {
  Calibration c = plausible();
  c.instructions[0].chains[0].misses = 1;
  c.instructions[0].chains[0].missed_kinds = "tiny";
  cal::Miss miss{0x3f800001u, 0x3f800000u, 0x40000000u, 16, {}, {}};
  miss.a[0] = 0x3c00;
  c.instructions[0].chains[0].examples = {miss};
  const auto all = judge(c, ours());
  const auto j = nlohmann::json::parse(calibration_json(c, all));
  EXPECT_EQ(j["schema"], "attest-calibrate/1");
  EXPECT_EQ(j["verdict"], "fail");
  EXPECT_EQ(j["functions"]["logf"]["relative_above"]["size"], 1.34);
  EXPECT_EQ(j["device"]["driver"], "1.2.3");
  EXPECT_EQ(j["constants"].size(), all.size());
  const std::string page = calibration_markdown(c, all, "attest calibrate --seed 1"),
                    words = calibration_text(c, all, false);
  for (const std::string& report : {page, words}) {
    for (const char* part :
         {"Test Device", "2.4400 @ 3d8005d0", "999/1000 (missed: tiny)", "arXiv 2512.07004", "FAILS"})
      EXPECT_NE(report.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("got 3f800001, model 3f800000, from c 40000000, a b 3c00*0000"), std::string::npos);
  EXPECT_NE(page.find("**fail**"), std::string::npos);
  EXPECT_EQ(calibration_text(c, all, true).find("Special functions"), std::string::npos);
}

// What a device gave, recorded: a Contract that claims less is wrong on every machine.
TEST(Calibrate, ContractsKeepToTheRecord) {
  const auto record =
      nlohmann::json::parse(read_file(ATTEST_SOURCE_DIR "/reports/recorded/calibrate-h200-2026-11-30.json"));
  EXPECT_EQ(record["verdict"], "pass");
  const auto worst = [&](const char* function) {
    const auto& f = record["functions"][function];
    return std::max(f["relative_above"]["size"].get<double>(), f["relative_below"]["size"].get<double>());
  };
  for (const attn_kernel& k : attn::cuda_kernels()) {
    for (const char* exp : {"ex2.approx.ftz.f32", "exp2f"}) {
      if (k.contract.exp_form != ATTN_EXP2_FMA) continue;
      EXPECT_GT(k.contract.exp_error, worst(exp)) << k.name;
      EXPECT_GT(k.contract.rescale_exp_error, worst(exp)) << k.name;
    }
    if (k.op == ATTN_OP_STEP) {
      EXPECT_GT(k.contract.exp_error, worst("expf") + k.contract.rescale_exp_error + 1) << k.name;
    }
    EXPECT_GT(k.contract.log_relative, worst("logf")) << k.name;
    if (k.op == ATTN_OP_FORWARD) {
      EXPECT_GE(k.contract.division_error, 1 + worst("__frcp_rn")) << k.name;
    }
    for (const auto& i : record["instructions"]) {
      EXPECT_LE(k.contract.mma_terms, i["model"]["terms"]) << k.name;
      EXPECT_LE(k.contract.mma_fraction_bits, i["model"]["fraction_bits"]) << k.name;
    }
  }
}

// A reference that is off in the ninth digit is seen.
TEST(Calibrate, ChecksTheReference) {
  const std::uint32_t x = bits_as<std::uint32_t>(-3.3f),
                      y = bits_as<std::uint32_t>(static_cast<float>(std::exp2(-3.3)));
  const double r = std::exp2(static_cast<double>(-3.3f)), error = (bits_as<float>(y) - r) / r * 0x1p24;
  EXPECT_NEAR(exact_relative_error(cal::Function::exp2_flushed, x, y), error, 1e-8);
  EXPECT_EQ(exact_relative_error(cal::Function::log, one, 0), 0) << "log(1) is 0";
  EXPECT_NEAR(exact_relative_error(cal::Function::log2_approx, 0x41000000u, 0x40400001u), 0x1p24 / 3 * 0x1p-22, 1e-9);
  EXPECT_NEAR(exact_relative_error(cal::Function::reciprocal, 0x40000000u, 0x3f000001u), 2, 1e-9);
  std::vector<FunctionFacts> facts(1);
  cal::Extreme& e = error > 0 ? facts[0].binades[300].above : facts[0].binades[300].below;
  e = {std::fabs(error), x, y};
  EXPECT_EQ(check_reference(facts).inputs, 1);
  EXPECT_LT(check_reference(facts).worst, 0x1p-27);
  e.size += 1e-6;
  EXPECT_GT(check_reference(facts).worst, 0x1p-27);
}

// --- The tool. ---

bool has_device() {
  cal::Device device;
  std::string why;
  return cal::describe(device, why);
}

TEST(Calibrate, WithoutADeviceSaysSo) {
  if (has_device()) GTEST_SKIP() << "this machine has a CUDA device";
  const Ran plain = run_tool("calibrate --markdown c.md");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(plain.out.starts_with("NOT_RUN  ")) << plain.out;
  EXPECT_NE(read_file(scratch() + "/c.md").find("NOT_RUN"), std::string::npos);
  const Ran required = run_tool("calibrate --require cuda --json -");
  EXPECT_EQ(required.code, 3);
  EXPECT_EQ(required.json()["verdict"], "not_run");
  EXPECT_NE(required.err.find("cuda is required"), std::string::npos) << required.err;
}

TEST(Calibrate, RefusesWhatItCannotDo) {
  for (const char* bad : {"--require tpu", "--dots 0", "--dots many", "--seed -1", "--json absent/c.json", "extra"}) {
    const Ran r = run_tool(std::string("calibrate ") + bad);
    if (std::string(bad).starts_with("--json") && has_device()) continue;  // it would measure first
    EXPECT_EQ(r.code, 2) << bad << r.out << r.err;
  }
}

TEST(Calibrate, HelpTeaches) {
  const Ran r = run_tool("calibrate --help");
  EXPECT_EQ(r.code, 0);
  for (const char* part : {"--dots", "--require", "all 2^32 inputs", "mma_fraction_bits", "Examples:", "Exit codes: 0"})
    EXPECT_NE(r.out.find(part), std::string::npos) << part;
}

TEST(Calibrate, MeasuresThisDevice) {
  if (!has_device()) GTEST_SKIP() << "this machine has no CUDA device";
  const Ran r = run_tool("calibrate --dots 65536 --json - --quiet");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["verdict"], "pass");
}

}  // namespace
}  // namespace attest::testing
