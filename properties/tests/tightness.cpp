// How much of the deterministic bound our kernels use: no violation in over ten million output elements over all value
// families, and bounds near enough that a kernel which rounds P comes to 0.3 of them somewhere. Output rounding alone
// can use up 0.9 of a bound and proves nothing, so O is also measured in the accumulator format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "oracle/recipe.h"
#include "properties/check.h"
#include "properties/evaluate.h"
#include "properties/generate.h"

namespace attest {
namespace {

constexpr std::int64_t kElements = 600'000;  // of each forward kernel

struct Usage {
  double before_rounding = 0, stored = 0, lse = 0;  // largest error/bound
  std::int64_t elements = 0, failures = 0;
  std::string first_failure;
};

void judge(const Kernel& kernel, const Case& c, Usage& usage) {
  Problem p(c, formats_for(kernel));
  if (execute(kernel, p).status != Outcome::pass) return;
  const auto o = p.output("o"), lse = p.output("lse");
  const bool accumulator = c.out == OutDType::accumulator;
  for (const RowIndex& at : judged_rows(p, LawContext{})) {
    const Evaluated row = evaluate_row(kernel, p, at);
    for (std::int64_t e = -1; e < row.row.d_v; ++e) {
      const double got = e < 0 ? lse[lse_index(p, at)] : o[o_index(p, at, e)];
      const Judgement j = judge_element(kernel.abi->contract, row, e, got);
      ++usage.elements;
      if (j.verdict == Verdict::fail && usage.failures++ == 0)
        usage.first_failure = place(at, e) + " in\n" + to_text(c);
      if (j.verdict != Verdict::pass) continue;
      double& worst = e < 0 ? usage.lse : accumulator ? usage.before_rounding : usage.stored;
      worst = std::max(worst, j.ratio);
    }
  }
}

TEST(TightnessFull, KernelsKeepAndUseTheirBounds) {
  const Law& law = *find_law("encloses");
  std::int64_t total = 0;
  std::printf("%-24s %10s  largest error/bound: O before output rounding, O as stored, LSE\n", "kernel", "elements");
  for (const Kernel& kernel : runnable_kernels()) {
    if (kernel.abi->op != ATTN_OP_FORWARD) continue;
    SCOPED_TRACE(kernel.name);
    Usage usage;
    for (int n = 0; usage.elements < kElements; ++n) {
      ASSERT_LT(n, 200'000) << "the kernel refuses nearly everything";
      Random random(1, static_cast<std::uint64_t>(n));
      Case c = generate_case(kernel, law, random, 0.25 + 0.75 * random.unit());
      c.values.family = families()[static_cast<std::size_t>(n) % families().size()].name;
      c.values.parameters.clear();
      c.values.tensors.clear();
      c.out = n / static_cast<int>(families().size()) % 3 == 2 ? OutDType::storage : OutDType::accumulator;
      judge(kernel, c, usage);
    }
    std::printf("%-24s %10lld  %.3f %.3f %.3f\n", kernel.name.c_str(), static_cast<long long>(usage.elements),
                usage.before_rounding, usage.stored, usage.lse);
    EXPECT_EQ(usage.failures, 0) << usage.first_failure;
    const attn_contract& contract = kernel.abi->contract;
    if (contract.p_dtype != contract.acc_dtype) {
      EXPECT_GT(usage.before_rounding, 0.3);
      EXPECT_GT(usage.lse, 0.3);
    }
    total += usage.elements;
  }
  std::printf("%lld elements\n", static_cast<long long>(total));
  EXPECT_GE(total, 10'000'000);
}

}  // namespace
}  // namespace attest
