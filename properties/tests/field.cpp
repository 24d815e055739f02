// The criteria of other projects as we state them: what each comparator does with NaN and zeros, that every criterion
// can fail, and that no project raises a false alarm on a kernel without a bug.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "properties/field/broken.h"
#include "properties/field/build.h"
#include "properties/field/reference.h"
#include "properties/field/rules.h"
#include "properties/field/run.h"
#include "properties/field/values.h"
#include "properties/mutants/mutants.h"

namespace attest::field {
namespace {

const double kNaN = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

TEST(FieldRules, AllCloseIsThatOfTorch) {
  const std::vector<double> want = {1, -2, 0};
  EXPECT_TRUE(all_close(std::vector<double>{1.01, -2, 1e-3}, want, 1e-3, 1e-2));
  EXPECT_FALSE(all_close(std::vector<double>{1.02, -2, 0}, want, 1e-3, 1e-2));
  EXPECT_FALSE(all_close(std::vector<double>{kNaN, -2, 0}, want, 10, 10));
  EXPECT_FALSE(all_close(std::vector<double>{kInf, -2, 0}, want, 10, 10));
  EXPECT_TRUE(all_close(std::vector<double>{-kInf}, std::vector<double>{-kInf}, 0, 0));
  EXPECT_FALSE(all_close(std::vector<double>{kNaN}, std::vector<double>{kNaN}, 1, 1));
  EXPECT_TRUE(all_close(std::vector<double>{kNaN}, std::vector<double>{kNaN}, 1, 1, true));
}

TEST(FieldRules, OneComparatorIsBlindToNaN) {
  EXPECT_EQ(exceeding(std::vector<double>{kNaN, 5}, std::vector<double>{0, 0}, 1, 0), 1);
  EXPECT_TRUE(std::isnan(max_error(std::vector<double>{kNaN, 5}, std::vector<double>{0, 0})));
}

TEST(FieldReference, IsAttentionByHand) {
  field::Test t = with_scale(forward(DType::fp32, {1, 1, 1, 1, 2, 1}, Causal::none, constant(0, 0, 0)), 1);
  t.fill(t.problem, 1);
  t.problem.values.tensors["q"].literal = {1};
  t.problem.values.tensors["k"].literal = {0, std::log(3.0)};
  t.problem.values.tensors["v"].literal = {0, 4};
  const Problem problem(t.problem, Formats{});
  const Outputs o = attend(problem, read_inputs(problem), {DType::fp64, DType::fp64, DType::fp64});
  EXPECT_NEAR(o.o.at(0), 3, 1e-6);
  EXPECT_NEAR(o.lse.at(0), std::log(4.0), 1e-6);
}

// A project's own reference, stored in the format of the test, passes; what is far off fails, whoever asks.
TEST(FieldProjects, EveryCriterionCanFail) {
  for (const Project& p : projects()) {
    SCOPED_TRACE(p.name);
    ASSERT_FALSE(p.tests.empty());
    EXPECT_LE(p.column.size(), 6u);
    EXPECT_FALSE(p.source.empty());
    field::Test t = p.tests.front();
    t.fill(t.problem, 1);
    Formats formats;
    formats.storage = t.problem.dtype;
    const Problem problem(t.problem, formats);
    const Reference reference = reference_for(p, problem, read_inputs(problem));
    const Rule& rule = t.rule ? t.rule : p.rule;
    Outputs got = reference.want;
    EXPECT_TRUE(rule({got, reference, t.problem.dtype, t.problem.shape.tk}));
    for (double& x : got.o) x += 100;
    EXPECT_FALSE(rule({got, reference, t.problem.dtype, t.problem.shape.tk}));
  }
}

TEST(FieldProjects, KnownFactsAt4096Keys) {
  std::map<std::string_view, std::map<Damage, int>> accepted;
  for (const Project& p : projects()) {
    const std::vector<Acceptance> all = acceptances(p, 1);
    for (std::size_t b = 0; b < all.size(); ++b) accepted[p.name][broken_outputs()[b].damage] = all[b].accepted;
  }
  const auto accepts = [&](std::string_view name, Damage damage) { return accepted.at(name).at(damage); };
  // More than n = 126 keys make oneDNN's relative arm larger than 1 in fp16: zeros pass. So do they in Transformer
  // Engine's bf16 tests, where outputs are below the tolerance.
  EXPECT_EQ(accepts("oneDNN benchdnn", Damage::zeros), 2);
  EXPECT_GE(accepts("Transformer Engine", Damage::zeros), 1);
  // Only FlashInfer's comparator that counts exceeding elements lets a NaN through.
  int blind = 0, dropped = 0;
  for (const Project& p : projects()) {
    blind += accepts(p.name, Damage::one_nan) > 0;
    dropped += accepts(p.name, Damage::dropped_key) > 0;
  }
  EXPECT_EQ(blind, 1);
  EXPECT_GT(accepts("FlashInfer trtllm-gen", Damage::one_nan), 0);
  // A dropped key passes most of the rules.
  EXPECT_GT(dropped, static_cast<int>(projects().size()) / 2);
}

TEST(FieldProjects, OneDnnAcceptsZerosFrom127KeysOn) {
  const Project& p = project("oneDNN benchdnn");
  Reference reference;
  reference.want.o = {0.5}, reference.magnitude = {1};
  const auto zero_passes = [&](DType format, std::int64_t keys) {
    return p.rule({Outputs{{0}, {}}, reference, format, keys});
  };
  EXPECT_FALSE(zero_passes(DType::fp16, 126));
  EXPECT_TRUE(zero_passes(DType::fp16, 127));
  EXPECT_FALSE(zero_passes(DType::bf16, 14));
  EXPECT_TRUE(zero_passes(DType::bf16, 15));
}

TEST(FieldExaminer, SeesWhatTheProjectSees) {
  const Examiner examiner(1, 1);
  const std::vector<Kernel> controls = mutants::control_kernels(), planted = mutants::mutant_kernels();
  const auto kernel = [](const std::vector<Kernel>& all, std::string_view name) -> const Kernel& {
    for (const Kernel& k : all)
      if (k.name == name) return k;
    throw std::out_of_range(std::string(name));
  };
  const Kernel& correct = kernel(controls, "control.fp32.fa2");
  for (const Project& p : projects()) {
    const Opinion o = examiner.ask(p, correct, &correct);
    EXPECT_EQ(o.sight, Sight::untouched) << p.name << ": " << o.by;
    EXPECT_GT(o.tests, 0) << p.name;
  }
  // The wrong half of the keys is seen by everybody who has a causal test; one future key under random values is not.
  const Kernel& ignored = kernel(planted, "mutant.causal-ignored");
  EXPECT_EQ(examiner.ask(project("FlashAttention 2"), ignored, &correct).sight, Sight::caught);
  // No project tests a step of the online softmax on its own, and a boolean mask is no option of FlashAttention.
  const Kernel& step = kernel(planted, "mutant.step-no-guard");
  EXPECT_EQ(examiner.ask(project("FlashAttention 2"), step, nullptr).sight, Sight::untested);
  const Kernel& mask = kernel(planted, "mutant.mask-ignored");
  EXPECT_EQ(examiner.ask(project("FlashAttention 2"), mask, &correct).sight, Sight::untouched);
  EXPECT_EQ(examiner.ask(project("PyTorch SDPA"), mask, &correct).sight, Sight::caught);
  // LSE alone is wrong, by 2^-9: FlashAttention 2 does not look at it, FlashInfer does.
  const Kernel& lse = kernel(planted, "mutant.lse-off-by-constant");
  EXPECT_EQ(examiner.ask(project("FlashAttention 2"), lse, &correct).sight, Sight::accepted);
  EXPECT_EQ(examiner.ask(project("FlashInfer"), lse, &correct).sight, Sight::caught);
}

TEST(FieldExaminer, MergesAreSeenByThoseWhoTestThem) {
  const Examiner examiner(1, 1);
  const std::vector<Kernel> planted = mutants::mutant_kernels();
  for (const Kernel& k : planted) {
    if (k.name != "mutant.merge-weights-swapped" && k.name != "mutant.merge-base-2") continue;
    for (const Project& p : projects()) {
      const Opinion o = examiner.ask(p, k, nullptr);
      EXPECT_EQ(o.sight, p.merges.empty() ? Sight::untested : Sight::caught) << p.name << " on " << k.name;
    }
  }
}

}  // namespace
}  // namespace attest::field
