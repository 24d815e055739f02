#include <gtest/gtest.h>

#include <cstdlib>

#include "fuzz/genome_case.h"
#include "fuzz/mutate.h"
#include "fuzz/subjects.h"
#include "properties/check.h"

namespace attest::fuzz {
namespace {

std::vector<Subject> subjects_named(const char* globs) {
  setenv("ATTEST_FUZZ_KERNELS", globs, 1);
  std::vector<Subject> s = subjects_of(Op::forward);
  unsetenv("ATTEST_FUZZ_KERNELS");
  return s;
}

// What mutation makes of the default within so many tries, where it is a pattern that begins once.
std::vector<Genome> begun_once(int tries) {
  std::vector<Genome> out;
  Random random(1);
  for (int n = 0; n < tries; ++n) {
    Genome g;
    mutate(g, random);
    if (g[Gene::once] == 1 && g.words[1].size() == 3) out.push_back(g);
  }
  return out;
}

Outcome encloses(const Genome& g, const Subject& s) {
  return check_case(to_case(g, s.setting), s.kernel, *find_law("encloses"), LawContext{}, "").outcome;
}

// Adders that truncate are within a statistical law's sight on any values, and within the derived bound's on these.
TEST(Moves, FadingWeightsShowAddersThatTruncate) {
  const auto mutants = subjects_named("mutant.sum-chopped*,mutant.long-sum-chopped*");
  const auto correct = subjects_named("cpu.*.fp32");
  const std::vector<Genome> genomes = begun_once(4000);
  ASSERT_GT(genomes.size(), 20u);
  ASSERT_EQ(mutants.size(), 2u);
  for (const Subject& mutant : mutants) {
    int found = 0;
    for (const Genome& g : genomes) found += encloses(g, mutant) == Outcome::fail;
    EXPECT_GT(found, 0) << mutant.kernel.name;
  }
  for (const Subject& s : correct)
    for (const Genome& g : genomes) ASSERT_NE(encloses(g, s), Outcome::fail) << s.kernel.name;
}

}  // namespace
}  // namespace attest::fuzz
