// The kill matrix as a command: exit codes, seeds, limits, reports; and that every law is somebody's.
#include <gtest/gtest.h>

#include <algorithm>

#include "properties/mutants/mutants.h"
#include "reports/tests/run_tool.h"
#include "reports/tool/mutants.h"

namespace attest::testing {
namespace {

// Merges under their own laws: quick, and every mutant dies.
const std::string small = "mutants --mutants 'merge-empty-*' --laws 'merge-*' --laws encloses --cases 6 --corpus none ";

nlohmann::json without_times(nlohmann::json j) {
  for (auto& run : j["runs"]) {
    for (const char* time : {"median_seconds", "most_seconds"}) run.erase(time);
    for (auto& k : run["kernels"]) k.erase("seconds_to_kill");
  }
  return j;
}

TEST(Mutants, ALawHasAMutantOrAReason) {
  for (const Law& law : laws()) {
    const bool named = std::any_of(mutants::table().begin(), mutants::table().end(),
                                   [&](const mutants::Mutant& m) { return m.killer == law.name; });
    EXPECT_TRUE(named || !why_it_stays(law.name).empty()) << law.name;
  }
}

TEST(Mutants, OneLineForEachSeed) {
  const Ran r = run_tool(small + "--quiet --seeds 1,2 --seed 3");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  for (const char* seed : {"PASS  seed 1: 2 of 2", "PASS  seed 2: 2 of 2", "PASS  seed 3: 2 of 2"})
    EXPECT_NE(r.out.find(seed), std::string::npos) << seed << "\n" << r.out;
}

TEST(Mutants, ReportsSayTheSame) {
  const Ran r = run_tool(small + "--seeds 1,2 --json m.json --markdown m.md");
  ASSERT_EQ(r.code, 0) << r.out << r.err;
  const auto j = nlohmann::json::parse(read_file(scratch() + "/m.json"));
  EXPECT_EQ(j["schema"], "attest-mutants/2");
  EXPECT_EQ(j["verdict"], "pass");
  ASSERT_EQ(j["runs"].size(), 2u);
  EXPECT_EQ(j["runs"][1]["seed"], 2);
  const std::string page = read_file(scratch() + "/m.md");
  for (const auto& law : j["laws"])
    for (const auto& mutant : law["only_killer_of"])
      EXPECT_NE(page.find(mutant.get<std::string>()), std::string::npos) << mutant;
  EXPECT_NE(page.find("| 2 | 2 of 2 | 0 | 0 |"), std::string::npos) << page;
}

TEST(Mutants, ASurvivorFails) {
  const Ran r = run_tool("mutants --mutants merge-by-fma --laws encloses --cases 2 --corpus none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("SURVIVES mutant.merge-by-fma"), std::string::npos) << r.out;
}

TEST(Mutants, ALateKillFails) {
  const Ran r = run_tool(small + "--seconds 1e-9");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("LATE mutant.merge-empty-nan"), std::string::npos) << r.out;
}

TEST(Mutants, JobsChangeNothing) {
  const Ran one = run_tool(small + "--quiet --json - --jobs 1"), four = run_tool(small + "--quiet --json - --jobs 4");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(without_times(one.json()), without_times(four.json()));
}

TEST(Mutants, RefusesWhatItCannotDo) {
  for (const std::string bad : {"--mutants no-such", "--laws no-such", "--seeds 1,x", "--seeds -1", "--seconds 0"})
    EXPECT_EQ(run_tool("mutants " + bad).code, 2) << bad;
}

}  // namespace
}  // namespace attest::testing
