// What is around a kernel's run: refusals, scratch, errors and exceptions are results.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "properties/check.h"
#include "properties/execute.h"
#include "properties/laws/common.h"
#include "properties/tests/broken_kernels.h"

namespace attest {
namespace {

// A kernel whose functions are given; the rest is the readable one.
struct Subject {
  attn_kernel abi;
  Kernel kernel;
  Subject() : abi(*broken::kernel(ATTN_OP_FORWARD, broken::Mistake::none).abi) {
    kernel = {&abi, "subject", "tests", "custom", {}};
  }
  Execution run(const Case& c = {}) {
    Problem p(c, formats_for(kernel));
    return execute(kernel, p);
  }
};

TEST(Execute, RefusalsAreResults) {
  Subject s;
  s.abi.supports = [](const attn_problem*, char* why, std::size_t size) {
    std::strncpy(why, "no such head dimension", size);
    return static_cast<std::int32_t>(ATTN_REJECTED);
  };
  EXPECT_EQ(s.run().status, Outcome::rejected);
  EXPECT_EQ(s.run().reason, "no such head dimension");
  s.abi.supports = [](const attn_problem*, char*, std::size_t) { return static_cast<std::int32_t>(ATTN_NO_DEVICE); };
  EXPECT_EQ(s.run().status, Outcome::not_run);
}

TEST(Execute, ErrorsAndExceptionsFail) {
  Subject s;
  s.abi.run = [](const attn_problem*, void*, std::size_t, char*, std::size_t) {
    return static_cast<std::int32_t>(ATTN_ERROR);
  };
  EXPECT_EQ(s.run().status, Outcome::fail);
  s.abi.run = [](const attn_problem*, void*, std::size_t, char*, std::size_t) -> std::int32_t {
    throw std::runtime_error("out of registers");
  };
  EXPECT_EQ(s.run().status, Outcome::fail);
  EXPECT_NE(s.run().reason.find("out of registers"), std::string::npos);
}

TEST(Execute, WorkspaceIsCheckedAgainstTheContract) {
  Subject s;
  s.abi.workspace_size = [](const attn_problem*) { return std::size_t{1000}; };
  EXPECT_EQ(s.run().status, Outcome::fail);
  s.abi.contract.workspace_fixed = 1000;
  EXPECT_EQ(s.run().status, Outcome::pass);
  EXPECT_EQ(s.run().workspace_bytes, 1000u);
}

TEST(Execute, WorkspaceIsAlignedPoisonedAndGuarded) {
  Subject s;
  s.abi.contract.workspace_fixed = 100;
  s.abi.workspace_size = [](const attn_problem*) { return std::size_t{100}; };
  s.abi.run = [](const attn_problem*, void* w, std::size_t bytes, char*, std::size_t) -> std::int32_t {
    const auto* b = static_cast<const unsigned char*>(w);
    const bool good = reinterpret_cast<std::uintptr_t>(w) % 64 == 0 && bytes == 100 && b[0] == 0xFF && b[99] == 0xFF;
    return good ? ATTN_OK : ATTN_ERROR;
  };
  EXPECT_EQ(s.run().status, Outcome::pass);
#if !defined(__SANITIZE_ADDRESS__)
  // Under AddressSanitizer the write itself ends the program.
  s.abi.run = [](const attn_problem*, void* w, std::size_t bytes, char*, std::size_t) -> std::int32_t {
    static_cast<unsigned char*>(w)[bytes] = 0;
    return ATTN_OK;
  };
  EXPECT_EQ(s.run().status, Outcome::fail);
#endif
}

TEST(Execute, ReservedOptionsMustBeRefused) {
  Subject s;
  s.abi.supports = [](const attn_problem*, char*, std::size_t) { return static_cast<std::int32_t>(ATTN_OK); };
  Case c;
  c.reserved.softcap = 30;
  EXPECT_EQ(s.run(c).status, Outcome::fail);
}

TEST(Execute, AllowanceFollowsTheFormula) {
  attn_contract contract{};
  contract.workspace_fixed = 1;
  contract.workspace_per_row = 2;
  contract.workspace_per_value = 3;
  contract.workspace_per_split = 5;
  contract.workspace_per_thread = 7;
  Case c;
  c.shape = {2, 6, 3, 10, 20, 4, 8, 2};
  c.tiling = {4, 32, 3, 2};
  Subject s;
  Problem p(c, formats_for(s.kernel));
  const double rows = 2 * 6 * 10;
  EXPECT_EQ(workspace_allowance(contract, p.abi()),
            1 + 2 * rows + 3 * rows * 8 + 5 * 3 * rows * 10 + 7 * 2.0 * (4 + 20 + 1) * (4 + 8 + 16));
}

TEST(JudgedRows, AllWhenTheyFitAndEdgesOtherwise) {
  Case c;
  c.shape = {1, 2, 1, 300, 5, 1, 1, 2};
  c.tiling.block_q = 64;
  Subject s;
  Problem p(c, formats_for(s.kernel));
  LawContext context;
  context.max_rows = 1000;
  EXPECT_EQ(judged_rows(p, context).size(), 600u);
  context.max_rows = 60;
  const auto rows = judged_rows(p, context);
  EXPECT_LE(rows.size(), 60u);
  EXPECT_GE(rows.size(), 40u);
  const auto has = [&](std::int64_t i) {
    return std::any_of(rows.begin(), rows.end(), [i](const RowIndex& r) { return r.i == i; });
  };
  EXPECT_TRUE(has(0) && has(63) && has(64) && has(65) && has(299));
}

TEST(JudgedRows, TheEndsOfEveryHeadAreAmongThem) {
  Case c;
  c.shape = {3, 40, 8, 20, 5, 1, 1, 2};
  Subject s;
  Problem p(c, formats_for(s.kernel));
  LawContext context;
  context.max_rows = 32;
  const auto rows = judged_rows(p, context);
  EXPECT_LE(rows.size(), 3u * 40 * 2 + 16);
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t h = 0; h < 40; ++h)
      for (std::int64_t i : {0, 19})
        EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const RowIndex& r) {
          return r.batch == b && r.head == h && r.i == i;
        })) << place({b, h, i}, -1);
}

TEST(Bounds, ThatAreNotNumbersDecideNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto where = [] { return std::string("o[0]"); };
  for (const double got : {1.0, 2.0, nan}) {
    Tally two_runs, one_run;
    within_both(two_runs, got, nan, 1.0, 0.5, 0, where);
    one_run.add(Judgement{got == 1 ? Verdict::pass : Verdict::fail, 0, 0}, got, 1.0, nan, where);
    for (const Tally& tally : {two_runs, one_run}) {
      const CheckResult r = tally.finish("nothing");
      EXPECT_EQ(r.outcome, Outcome::undecided) << got;
      EXPECT_EQ(r.reason, kBoundIsNaN);
    }
  }
}

// Contracts whose constants need not behave like roundings, or whose sums have no order.
TEST(StatisticalLaws, BindWhereTheirModelHolds) {
  const Law &expected = *find_law("expected"), &unbiased = *find_law("unbiased");
  const Case c;
  Subject s;
  attn_contract& contract = s.abi.contract;
  EXPECT_EQ(unbiased.why_not(c, s.kernel), "");
  const auto alone = [&](double& constant, double largest) {
    const double was = std::exchange(constant, largest);
    EXPECT_EQ(unbiased.why_not(c, s.kernel), "");
    constant = largest * (1 + 0x1p-40);
    EXPECT_NE(unbiased.why_not(c, s.kernel), "");
    EXPECT_EQ(expected.why_not(c, s.kernel), "");
    constant = was;
  };
  alone(contract.exp_error, 2);
  alone(contract.rescale_exp_error, 2);
  alone(contract.division_error, 1.5);
  contract.sum_order = ATTN_SUM_ANY;
  EXPECT_NE(expected.why_not(c, s.kernel), "");
  EXPECT_NE(unbiased.why_not(c, s.kernel), "");
  contract.pv_accumulation = ATTN_ACC_TENSOR_CORE;
  EXPECT_EQ(expected.why_not(c, s.kernel), "");
  for (const Kernel& kernel : runnable_kernels()) {
    if (kernel.abi->op != ATTN_OP_FORWARD) continue;
    EXPECT_EQ(unbiased.why_not(c, kernel), "") << kernel.name;
  }
}

// Swings of a height that no number of the format reaches: an answer all the same.
TEST(Swings, EndForEveryScale) {
  Case c;
  c.shape = {1, 1, 1, 2, 3, 1, 1, 2};
  const Kernel right = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::none);
  for (const double scale : {0x1p-1074, 0x1p-1022, 0x1p-140, 0x1p100, 0x1p1023}) {
    c.scale = scale;
    EXPECT_NE(check_case(c, right, *find_law("swings"), LawContext{}).outcome, Outcome::fail) << scale;
  }
}

TEST(CheckCase, RecordsBeforeItRunsAndKeepsOnlyFailures) {
  const std::string path = testing::TempDir() + "attest-record.case";
  Case c;
  c.shape.tk = 3;
  const Law& law = *find_law("encloses");
  const Kernel right = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::none);
  const Kernel wrong = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::off_by_a_thousandth);
  EXPECT_EQ(check_case(c, right, law, LawContext{}, path).outcome, Outcome::pass);
  EXPECT_THROW(load_case(path), CaseError);
  EXPECT_EQ(check_case(c, wrong, law, LawContext{}, path).outcome, Outcome::fail);
  EXPECT_EQ(load_case(path), c);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace attest
