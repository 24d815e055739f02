// Each law passes on a readable right kernel and fails on one with the mistake that the law is about.
#include <gtest/gtest.h>

#include "properties/check.h"
#include "properties/generate.h"
#include "properties/tests/broken_kernels.h"

namespace attest {
namespace {

constexpr std::uint64_t kSeed = 7;

// Checks generated cases until one fails; the result says what was found, or PASS if enough passed.
struct Search {
  CheckResult failure;
  Case failing;
  int passes = 0;
};
Search search(const Kernel& kernel, const Law& law, int cases) {
  Search s;
  for (int n = 0; n < cases; ++n) {
    Random random(kSeed, static_cast<std::uint64_t>(n));
    const Case c = generate_case(kernel, law, random, 0.5);
    if (!law.why_not(c, kernel).empty()) continue;
    const CheckResult r = check_case(c, kernel, law, LawContext{});
    s.passes += r.outcome == Outcome::pass;
    if (r.outcome != Outcome::fail) continue;
    s.failure = r;
    s.failing = c;
    break;
  }
  return s;
}

TEST(LawsCanFail, TheRightKernelPassesEveryLaw) {
  for (const std::int32_t op : {ATTN_OP_FORWARD, ATTN_OP_STEP, ATTN_OP_MERGE}) {
    const Kernel kernel = broken::kernel(op, broken::Mistake::none);
    for (const Law& law : laws()) {
      Random random(kSeed);
      if (!law.why_not(generate_case(kernel, law, random, 0.5), kernel).empty()) continue;
      const Search s = search(kernel, law, 40);
      EXPECT_NE(s.failure.outcome, Outcome::fail)
          << law.name << " seed " << kSeed << ": " << describe(s.failure) << "\n"
          << to_text(s.failing);
      EXPECT_GT(s.passes, 0) << law.name;
    }
  }
}

TEST(LawsCanFail, AnUnusualContractIsHonoured) {
  const Kernel kernel = broken::unusual_kernel();
  for (const Law& law : laws()) {
    Random random(kSeed);
    if (!law.why_not(generate_case(kernel, law, random, 0.5), kernel).empty()) continue;
    const Search s = search(kernel, law, 40);
    EXPECT_NE(s.failure.outcome, Outcome::fail) << law.name << " seed " << kSeed << ": " << describe(s.failure) << "\n"
                                                << to_text(s.failing);
    EXPECT_GT(s.passes, 0) << law.name;
  }
}

TEST(LawsCanFail, EveryLawHasAMistakeThatItFinds) {
  for (const Law& law : laws()) {
    const auto& rows = broken::table();
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& b) { return b.law == law.name; })) << law.name;
  }
}

TEST(LawsCanFail, EachMistakeIsFound) {
  for (const auto& [name, mistake, op] : broken::table()) {
    const Law* law = find_law(name);
    ASSERT_NE(law, nullptr) << name;
    const Kernel kernel = broken::kernel(op, mistake);
    const Search s = search(kernel, *law, 120);
    ASSERT_EQ(s.failure.outcome, Outcome::fail) << name << " does not see mistake " << static_cast<int>(mistake);
    EXPECT_NE(describe(s.failure).size(), 0u);
    // A shrunk case is no larger and still fails.
    const Case small = shrink_failure(s.failing, kernel, *law, LawContext{}, 60);
    EXPECT_EQ(check_case(small, kernel, *law, LawContext{}).outcome, Outcome::fail) << name << "\n" << to_text(small);
  }
}

}  // namespace
}  // namespace attest
