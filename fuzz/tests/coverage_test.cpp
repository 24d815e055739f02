#include <gtest/gtest.h>

#include "fuzz/case_coverage.h"
#include "fuzz/counters.h"
#include "fuzz/subjects.h"

namespace attest::fuzz {
namespace {

// What a genome adds to the counters.
std::size_t slots_of(const Genome& g, const Subject& s) {
  forget_situations();
  cover(to_case(g, s.setting), s.kernel);
  return situations_met();
}

TEST(Coverage, TellsTileClassesMaximaAndMasksApart) {
  const Subject s = subjects_of(Op::forward).front();
  Genome plain;
  const std::size_t few = slots_of(plain, s);
  EXPECT_GT(few, 0u);
  // Masked rows, partial tiles and rising maxima are new: slots that the plain case does not have.
  Genome rich = plain;
  rich[Gene::block_k] = 2;
  rich[Gene::causal] = 2;
  rich[Gene::tq] = 7;
  forget_situations();
  cover(to_case(plain, s.setting), s.kernel);
  const std::size_t before = situations_met();
  cover(to_case(rich, s.setting), s.kernel);
  EXPECT_GT(situations_met(), before);
}

TEST(Coverage, EverySmallGainInErrorIsNew) {
  forget_situations();
  met_ratio(0, Part::o, 0.5);
  const std::size_t one = situations_met();
  met_ratio(0, Part::o, 0.5);
  EXPECT_EQ(situations_met(), one);
  met_ratio(0, Part::o, 0.55);
  met_ratio(1, Part::o, 0.5);
  EXPECT_EQ(situations_met(), one + 2);
  met_ratio(0, Part::o, 0);
  EXPECT_EQ(situations_met(), one + 2);
}

TEST(Subjects, MutantsAreTakenOnlyWhenNamed) {
  for (const Subject& s : subjects_of(Op::forward)) EXPECT_FALSE(s.kernel.name.starts_with("mutant.")) << s.kernel.name;
  setenv("ATTEST_FUZZ_KERNELS", "*", 1);
  for (const Subject& s : subjects_of(Op::forward)) EXPECT_FALSE(s.kernel.name.starts_with("mutant.")) << s.kernel.name;
  setenv("ATTEST_FUZZ_KERNELS", "mutant.gqa-*,cpu.fa1.fp32", 1);
  EXPECT_EQ(subjects_of(Op::forward).size(), 3u);
  unsetenv("ATTEST_FUZZ_KERNELS");
}

TEST(Subjects, NoMatchEndsWithTwo) {
  setenv("ATTEST_FUZZ_KERNELS", "cpu.fa9", 1);
  EXPECT_EXIT(subjects_of(Op::forward), testing::ExitedWithCode(2), "no kernel for this target matches");
  unsetenv("ATTEST_FUZZ_KERNELS");
}

// Every law that may judge searched inputs speaks of some kernel of the operation that it is about.
TEST(Subjects, EveryLawIsReached) {
  for (const Law& law : laws()) {
    if (!law.searched_inputs) continue;
    bool reached = false;
    for (const Op op : {Op::forward, Op::step, Op::merge})
      for (const Subject& s : subjects_of(op))
        for (const Law* l : s.laws) reached = reached || l == &law;
    EXPECT_TRUE(reached) << law.name;
  }
}

}  // namespace
}  // namespace attest::fuzz
