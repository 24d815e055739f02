// The kill matrix as a command: exit codes, seeds, limits, reports; and that every law is somebody's.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "properties/device.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "properties/mutants/mutants.h"
#include "reports/tests/run_tool.h"
#include "reports/tool/mutants.h"
#include "reports/tool/mutants_child.h"
#include "reports/tool/mutants_device.h"

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

TEST(DeviceMutants, EachIsNamedOnceWithAKillerThatExists) {
  std::set<std::string_view> names;
  std::set<mutants::DeviceBug> bugs;
  for (const mutants::DeviceMutant& m : mutants::device_table()) {
    EXPECT_TRUE(names.insert(m.facts.name).second) << m.facts.name;
    EXPECT_TRUE(bugs.insert(m.bug).second) << m.facts.name;
    const auto tools = sanitizer_tools();
    EXPECT_TRUE(find_law(m.facts.killer) ||
                std::any_of(tools.begin(), tools.end(), [&](const Law& t) { return t.name == m.facts.killer; }))
        << m.facts.killer;
  }
  EXPECT_EQ(bugs.size(), static_cast<std::size_t>(mutants::DeviceBug::accumulator_in_16_bit));
  for (const Kernel& k : mutants::device_mutant_kernels()) EXPECT_EQ(k.abi->device, ATTN_DEVICE_CUDA);
  EXPECT_EQ(mutants::device_control_kernels().size(), 3u);
}

// The case is larger than a file may ask for, so nothing has checked it.
TEST(DeviceMutants, TheFarCasePasses32Bits) {
  for (const mutants::TargetedCase& t : mutants::targeted_cases()) {
    ASSERT_NE(find_law(t.law), nullptr);
    const auto stride = t.data.shape.d_qk + t.data.k_layout.row_padding;
    const auto far = [&](std::int64_t j) {
      return t.data.mask.visible.literal[static_cast<std::size_t>(j)] && j * stride > INT32_MAX;
    };
    EXPECT_TRUE(far(t.data.shape.tk - 1));
    EXPECT_LT(problem_bytes(t.data, {DType::fp16, DType::fp32}), 0x1.1p32);
  }
}

TEST(DeviceMutants, WithoutADeviceAllAreNotRun) {
  if (!why_no_device(ATTN_DEVICE_CUDA)) GTEST_SKIP() << "there is a device";
  const Ran r = run_tool("mutants --device cuda");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("NOT_RUN mutant.cuda."), std::string::npos) << r.out;
  EXPECT_EQ(run_tool("mutants --require cuda --mutants cuda.offset-32-bit").code, 3);
  for (const std::string bad : {"--device tpu", "--device cuda --mutants no-such", "--device cuda --one launch:no-such",
                                "--device cuda --one jump:control.cuda.fp32", "--require cpu"})
    EXPECT_EQ(run_tool("mutants " + bad).code, 2) << bad;
}

TEST(DeviceMutants, SanitizersAreRead) {
  const SanitizerRun clean = read_sanitizer("========= COMPUTE-SANITIZER\nx\n========= ERROR SUMMARY: 0 errors\n");
  EXPECT_TRUE(clean.ran && !clean.found);
  const SanitizerRun found = read_sanitizer(
      "========= COMPUTE-SANITIZER\n========= Invalid __shared__ read of size 4 bytes\n"
      "=========     at row_kernel(float*)+0x10\n=========     by thread (64,0,0)\n========= ERROR SUMMARY: 2 "
      "errors\n");
  EXPECT_TRUE(found.ran && found.found);
  EXPECT_EQ(found.evidence, "Invalid __shared__ read of size 4 bytes at row_kernel(float*)+0x10");
  const SanitizerRun race = read_sanitizer(
      "========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access at a and Read access at b\n"
      "========= \n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n");
  EXPECT_TRUE(race.found);
  // Neither a finding nor a clean bill.
  const SanitizerRun broken = read_sanitizer("========= COMPUTE-SANITIZER\nno such program\n");
  EXPECT_TRUE(!broken.ran && !broken.found);
  EXPECT_EQ(broken.evidence, "no summary: no such program");
}

TEST(DeviceMutants, ChildrenEndInTime) {
  EXPECT_EQ(run_child({"/bin/sh", "-c", "echo said; exit 0"}, 60).output, "said\n");
  EXPECT_EQ(run_child({"/bin/sh", "-c", "exit 3"}, 60).ending, "exit code 3");
  EXPECT_EQ(run_child({"/bin/sh", "-c", "kill -9 $$"}, 60).ending, "signal 9");
  // With what it has started, which holds the line open.
  const Ended late = run_child({"/bin/sh", "-c", "echo begun; sleep 600 & sleep 600"}, 0.5);
  EXPECT_FALSE(late.in_time);
  EXPECT_LT(late.seconds, 30);
  EXPECT_EQ(late.output, "begun\n");
}

TEST(DeviceMutants, RowsTravelBetweenProcesses) {
  const std::vector<const Law*> columns = {find_law("encloses"), find_law("hull"), &sanitizer_tools()[0]};
  KillRow row;
  row.cells = {{7, true, "generated 3"}, {4, false, ""}, {}};
  row.first_law = "encloses", row.first_case = "generated 3", row.reason = "FAIL at o";
  row.checks_to_kill = 9, row.seconds_to_kill = 0.25;
  KillRow read;
  read.cells.resize(3);
  read_row(read, columns, written_row(row, columns));
  EXPECT_EQ(written_row(read, columns), written_row(row, columns));

  // Ended in the middle of a check: that law has seen it.
  KillRow ended;
  ended.cells.resize(3);
  blame_last_check(ended, columns, "@ encloses\tgenerated 0\n@ hull\tgenerated 0\n", "signal 11");
  EXPECT_EQ(ended.first_law, "hull");
  EXPECT_TRUE(ended.cells[1].killed && !ended.cells[0].killed);
  EXPECT_EQ(ended.reason, "signal 11");

  // A tool's finding is added behind; the first killer stays, or is the tool where no law has killed.
  KillRow tool;
  tool.cells = {{}, {}, {1, true, "one launch"}};
  tool.first_law = "memcheck", tool.checks_to_kill = 1;
  add_findings(read, tool);
  EXPECT_EQ(read.first_law, "encloses");
  EXPECT_TRUE(read.cells[2].killed);
  KillRow survivor;
  survivor.cells = {{7, false, ""}, {4, false, ""}, {}};
  add_findings(survivor, tool);
  EXPECT_EQ(survivor.first_law, "memcheck");
  EXPECT_EQ(survivor.checks_to_kill, 12);
}

}  // namespace
}  // namespace attest::testing
