// What is around a kernel's run: refusals, scratch, errors and exceptions are results.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "properties/check.h"
#include "properties/execute.h"
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
