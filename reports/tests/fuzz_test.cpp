// `attest fuzz` over targets that are shell scripts: what it makes of what they print, and that nothing is lost.
#include <gtest/gtest.h>

#include <filesystem>

#include "reports/tests/run_tool.h"
#include "reports/tool/fuzz/lines.h"

namespace attest::testing {
namespace {

namespace fs = std::filesystem;

// A target that behaves like a libFuzzer program: `work` is what a worker does, with $inputs for its first folder.
void make_target(const std::string& name, const std::string& work) {
  const std::string path = scratch() + "/bin/fuzz_" + name;
  fs::create_directories(scratch() + "/bin");
  write_file(path, R"(#!/bin/sh
merge= inputs= from=
for word in "$@"; do case $word in
  -merge=1) merge=1 ;;
  -*) ;;
  *) if [ -z "$inputs" ]; then inputs=$word; elif [ -z "$from" ]; then from=$word; fi ;;
esac; done
if [ -n "$merge" ]; then cp "$from"/a "$inputs"/; exit 0; fi
)" + work + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

constexpr const char* working = R"(echo x > "$inputs/a"; echo yy > "$inputs/b"
echo "#1	INITED cov: 3 ft: 4 corp: 1/1b exec/s: 0 rss: 30Mb"
echo "attest-worst: cpu.fa2.fp32 0.25"; echo "attest-worst: cpu.fa2.fp32 0.5"
echo "#512	pulse  cov: 30 ft: 44 corp: 2/3b lim: 4 exec/s: 256 rss: 31Mb"
echo "stat::number_of_executed_units: 600"
sleep 2)";

// A case on which no kernel can be right: what it expects is wrong.
const char* const wrong = R"(cat > found.case <<'CASE'
{"schema": "attest-case/1", "about": "x", "op": "forward", "shape": {"tq": 1, "tk": 1, "d_qk": 1, "d_v": 1},
 "values": {"tensors": {"q": [1], "k": [1], "v": [1]}}, "expected": {"tolerance": 0.01, "tensors": {"o": [7]}}}
CASE
echo "#40	NEW cov: 3 ft: 4 corp: 1/1b exec/s: 9 rss: 30Mb"
echo "attest-finding: found.case cpu.fa2.fp32 encloses o[0] is far off"
exit 77)";

TEST(FuzzLines, AreRead) {
  const auto s = fuzz_status("#2048\tREDUCE cov: 310 ft: 1200 corp: 40/3000b lim: 21 exec/s: 512 rss: 90Mb L: 3/9");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->executions, 2048);
  EXPECT_EQ(s->edges, 310);
  EXPECT_EQ(s->features, 1200);
  EXPECT_EQ(s->inputs, 40);
  EXPECT_EQ(s->rate, 512);
  EXPECT_EQ(fuzz_status("#16 DONE")->edges, -1);
  EXPECT_FALSE(fuzz_status("#x"));
  EXPECT_FALSE(fuzz_status("INFO: Seed: 1"));
  const auto f = fuzz_finding("attest-finding: a.case cpu.fa2.fp32 encloses o[1] is 3, not 4");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->file, "a.case");
  EXPECT_EQ(f->law, "encloses");
  EXPECT_EQ(f->message, "o[1] is 3, not 4");
  EXPECT_FALSE(fuzz_finding("attest-finding: a.case"));
  EXPECT_EQ(fuzz_checks("attest-checks: 40 made, 30 passed, 2 rejected")->rejected, 2);
  EXPECT_FALSE(fuzz_checks("attest-checks: 40 made"));
  EXPECT_EQ(fuzz_worst("attest-worst: k 0.75")->ratio, 0.75);
  EXPECT_FALSE(fuzz_worst("attest-worst: k nan"));
  EXPECT_FALSE(fuzz_worst("attest-worst: k x"));
  EXPECT_EQ(*fuzz_executed("stat::number_of_executed_units: 5000"), 5000);
  EXPECT_EQ(*fuzz_artifact("artifact_prefix='a-'; Test unit written to /x/a-crash-1"), "/x/a-crash-1");
}

TEST(FuzzTool, WorkersAreToldWhatStandsBesideTheTarget) {
  make_target("case", R"(echo "$*" > ../../told; echo "#100 DONE cov: 1 ft: 1 corp: 1/1b exec/s: 1 rss: 1Mb")");
  write_file(scratch() + "/bin/fuzz_case.options",
             "[libfuzzer]\nmax_len = 16384\nuse_counters = 0\ndict = words.dict\n");
  const Ran r = run_tool("fuzz --bin bin --seconds 1 --jobs 1 --stored none --findings f --keep-all");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  const std::string told = read_file(scratch() + "/told");
  for (const char* word : {" -max_len=16384 ", " -use_counters=0 ", "/bin/words.dict "})
    EXPECT_NE(told.find(word), std::string::npos) << told;
}

TEST(FuzzTool, ACampaignCountsAndKeepsItsInputs) {
  make_target("case", working);
  const Ran r = run_tool("fuzz --bin bin --seconds 1 --jobs 2 --stored none --findings f");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("1200 executions"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("30 edges, 44 features, 1 inputs, error/bound 0.5000 of cpu.fa2.fp32"), std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("PASS"), std::string::npos);
  EXPECT_TRUE(fs::exists(scratch() + "/attest-fuzz/case/a"));
  const std::string log = read_file(scratch() + "/attest-fuzz/log.jsonl");
  const auto last = nlohmann::json::parse(log.substr(log.rfind('{', log.size() - 60)), nullptr, false);
  EXPECT_NE(log.find("\"worst\":{\"cpu.fa2.fp32\":0.5}"), std::string::npos) << log;
}

TEST(FuzzTool, AFindingIsKeptOnceAndShownAgain) {
  make_target("forward", wrong);
  const Ran r = run_tool("fuzz --bin bin --seconds 3 --jobs 1 --stored none --findings f --keep-all");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING cpu.fa2.fp32 breaks encloses: o[0] is far off"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("FINDING", r.out.find("FINDING") + 1), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("does not show it again"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find(" 1 findings"), std::string::npos) << r.out;
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(scratch() + "/f")) kept.push_back(entry.path().string());
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_NE(read_file(kept[0]).find("found by fuzz_forward"), std::string::npos);
  EXPECT_EQ(run_tool("check " + kept[0] + " --kernels cpu.fa2.fp32").code, 1);
}

TEST(FuzzTool, AWorkerThatDiesWithoutAWordLeavesItsBytes) {
  make_target("verdict", R"(case "$*" in *crash-1*) exit 1 ;; esac
echo "#7	NEW cov: 3 ft: 4 corp: 1/1b exec/s: 9 rss: 30Mb"
echo x > crash-1; echo "==1==ERROR: AddressSanitizer: SEGV"; echo "artifact_prefix='a'; Test unit written to $PWD/crash-1"
exit 1)");
  const Ran r = run_tool("fuzz --bin bin --seconds 2 --jobs 1 --stored none --findings f --keep-all");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING fuzz_verdict died: ==1==ERROR: AddressSanitizer: SEGV"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("crash-1"), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(scratch() + "/attest-fuzz/findings/crash-1"));
}

// Killed from outside, as by the system, or by a device: no bytes, no last word, but the case is there.
TEST(FuzzTool, AWorkerThatIsKilledLeavesItsCase) {
  make_target("cuda", R"(echo "#9	NEW cov: 3 ft: 4 corp: 1/1b exec/s: 9 rss: 30Mb"
echo "attest-checks: 40 made, 30 passed, 2 rejected"
cat > running-cuda-$$.case <<'CASE'
{"schema": "attest-case/1", "about": "x", "op": "forward", "shape": {"tq": 1, "tk": 1, "d_qk": 1, "d_v": 1},
 "kernels": ["cpu.fa2.fp32"], "laws": ["encloses"],
 "values": {"tensors": {"q": [1], "k": [1], "v": [1]}}, "expected": {"tolerance": 0.01, "tensors": {"o": [7]}}}
CASE
kill -9 $$)");
  const Ran r = run_tool("fuzz --bin bin --seconds 2 --jobs 1 --stored none --findings f --keep-all");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING cpu.fa2.fp32 breaks encloses: fuzz_cuda died: "), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("does not show it again"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("5.0 % rejected"), std::string::npos) << r.out;
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch() + "/f"), {}), 1);
  for (const auto& entry : fs::directory_iterator(scratch() + "/attest-fuzz/findings"))
    EXPECT_EQ(entry.path().string().find("running-"), std::string::npos) << entry.path();
}

TEST(FuzzTool, ATargetThatCannotWorkIsIncomplete) {
  make_target("step", "echo 'attest: no kernel matches'; exit 2");
  const Ran r = run_tool("fuzz --bin bin --seconds 2 --jobs 2 --stored none --findings f");
  EXPECT_EQ(r.code, 3) << r.out << r.err;
  EXPECT_NE(r.out.find("attest: no kernel matches"), std::string::npos) << r.out;
}

TEST(FuzzTool, AMinimisingThatWasCutOffLosesNothing) {
  make_target("case", working);
  fs::create_directories(scratch() + "/attest-fuzz/case.before");
  fs::create_directories(scratch() + "/attest-fuzz/case.smaller");
  write_file(scratch() + "/attest-fuzz/case.before/old", "1");
  const Ran r = run_tool("fuzz --bin bin --seconds 1 --jobs 1 --stored none --findings f --keep-all");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_TRUE(fs::exists(scratch() + "/attest-fuzz/case/old"));
  EXPECT_FALSE(fs::exists(scratch() + "/attest-fuzz/case.before"));
}

TEST(FuzzTool, CtrlCEndsItInOrder) {
  make_target("case", "echo \"$@\" >> ../../arguments\n" + std::string(working) + "; sleep 60");
  const Ran r =
      run_shell("{ " + std::string(ATTEST_TOOL) +
                " fuzz --bin bin --jobs 1 --stored none --findings f & p=$!; sleep 2; kill -INT $p; wait $p; }");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("interrupted"), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(scratch() + "/attest-fuzz/case/b"));
  // A campaign without an end has turns of full length.
  EXPECT_NE(read_file(scratch() + "/arguments").find("-max_total_time=60 "), std::string::npos);
}

TEST(FuzzTool, TheRaceNamesWhatWasFound) {
  make_target(
      "forward",
      std::string("case $ATTEST_FUZZ_KERNELS in *tail-keys*) sleep 1; echo '#9 DONE'; exit 0 ;; esac\n") + wrong);
  make_target("step", wrong);
  make_target("merge", wrong);
  const Ran r = run_tool("fuzz --bin bin --mutants --seconds 1 --markdown race.md --jobs 8");
  EXPECT_EQ(r.code, 0) << r.out << r.err;  // no mutant has that name
  EXPECT_NE(r.out.find("mutants found within 60 s"), std::string::npos) << r.out;
  EXPECT_NE(read_file(scratch() + "/race.md").find("| encloses |"), std::string::npos);
}

TEST(FuzzTool, UsageIsTaught) {
  EXPECT_EQ(run_tool("fuzz --bin nowhere").code, 2);
  EXPECT_NE(run_tool("fuzz --bin nowhere").err.find("cmake --preset fuzz"), std::string::npos);
  make_target("case", working);
  EXPECT_NE(run_tool("fuzz --bin bin --target nothing").err.find("there are: case"), std::string::npos);
  EXPECT_EQ(run_tool("fuzz --seconds 0").code, 2);
}

}  // namespace
}  // namespace attest::testing
