// `attest fuzz --engine afl` with an afl-fuzz that is a shell script: what it is told, what becomes of the files that
// it leaves, and that nothing is lost.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "reports/tests/run_tool.h"
#include "reports/tool/fuzz/afl_stats.h"
#include "reports/tool/fuzz/process.h"

namespace attest::testing {
namespace {

namespace fs = std::filesystem;

void make_program(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  write_file(path, "#!/bin/sh\n" + content + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

// `work` is what a worker does, with $name, $start and $own, the folder of its own, which has its subfolders already.
void make_afl(const std::string& work) {
  make_program(scratch() + "/path/afl-fuzz", R"(echo "$@" >> ../../arguments
while [ "$1" != -- ]; do case $1 in
  -M | -S) name=$2; shift ;;
  -i) start=$2; shift ;;
  -o) sync=$2; shift ;;
esac; shift; done
target=$2; own=$sync/$name; mkdir -p "$own/queue" "$own/crashes" "$own/hangs"
)" + work);
}

// A target that is asked about one input at a time.
void make_target(const std::string& name, const std::string& replay) {
  make_program(scratch() + "/bin/fuzz_" + name, replay);
}

constexpr const char* stats = R"(cat > "$own/fuzzer_stats" <<STATS
execs_done        : 600
edges_found       : 30
corpus_found      : 1
STATS
)";

// A case on which no kernel can be right: what it expects is wrong.
const char* const broken_law = R"(cat > "$ATTEST_FUZZ_CASES/found.case" <<'CASE'
{"schema": "attest-case/1", "about": "x", "op": "forward", "shape": {"tq": 1, "tk": 1, "d_qk": 1, "d_v": 1},
 "values": {"tensors": {"q": [1], "k": [1], "v": [1]}}, "expected": {"tolerance": 0.01, "tensors": {"o": [7]}}}
CASE
echo "attest-finding: $ATTEST_FUZZ_CASES/found.case cpu.fa2.fp32 encloses o[0] is far off"
exit 77)";

Ran run_afl(const std::string& arguments) {
  return run_shell("PATH=\"$PWD/path:$PATH\" '" ATTEST_TOOL "' fuzz --engine afl --bin bin --findings f " + arguments);
}

std::vector<std::string> contents_of(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(scratch() + "/" + folder))
    out.push_back(read_file(entry.path().string()));
  std::sort(out.begin(), out.end());
  return out;
}

std::int64_t times(const std::string& text, const std::string& word) {
  std::int64_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(AflStats, AreRead) {
  const FuzzStatus s = afl_stats(
      "start_time        : 1600000000\nexecs_done        : 27651\nexecs_per_sec     : 461.90\ncorpus_count      : "
      "2500\n"
      "corpus_found      : 2325\nedges_found       : 16140\nedges_foun");
  EXPECT_EQ(s.executions, 27651);
  EXPECT_EQ(s.rate, 461);
  EXPECT_EQ(s.inputs, 2325);
  EXPECT_EQ(s.edges, 16140);
  EXPECT_EQ(s.features, -1);
  EXPECT_EQ(afl_stats("").executions, -1);
  EXPECT_EQ(afl_stats("execs_done        : x\n").executions, -1);
  EXPECT_EQ(afl_stats("execs_done        : 276").executions, -1);  // the rest is not written yet
}

TEST(AflStats, ThePlotsLastWholeLineIsRead) {
  const std::string names = "# relative_time, cur_item, corpus_count, execs_per_sec, total_execs, edges_found\n";
  const FuzzStatus s = afl_plot(names + "5, 1, 4, 100.5, 500, 20\n10, 1, 5, 110.25, 1100, 25\n15, 1, 5, 99");
  EXPECT_EQ(s.executions, 1100);
  EXPECT_EQ(s.edges, 25);
  EXPECT_EQ(s.rate, 110);
  EXPECT_EQ(s.inputs, -1);
  EXPECT_EQ(afl_plot(names).executions, -1);
}

TEST(AflStats, ACrashFileSaysHowItDied) {
  EXPECT_EQ(afl_death("id:000000,sig:06,src:000001,time:9,execs:40,op:havoc,rep:2"), "signal 6 (Aborted)");
  EXPECT_EQ(afl_death("id:000000,src:000001,time:9"), "no end within its time");
}

TEST(FuzzProcess, IsKilledWhenItsTimeIsOver) {
  FuzzProcess process({"sleep", "60"}, ".", {});
  const double begin = fuzz_clock();
  const int status = process.run_to_end([](const std::string&) {}, 0.5);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_LT(fuzz_clock() - begin, 30);
}

TEST(FuzzAfl, WhatWorkersKeptBecomesInputs) {
  make_target("case", "exit 0");
  make_afl(std::string(stats) + R"(ls "$start" > ../../start; env | grep -E '^A(FL|TTEST_FUZZ)_' > ../../environment
echo mine-$name > "$own/queue/id:000001,src:000000,time:9,execs:40,op:havoc,rep:2"
echo both > "$own/queue/id:000002,src:000000,time:9,execs:40,op:havoc,rep:2"
echo given > "$own/queue/id:000000,time:0,execs:0,orig:old"
echo theirs > "$own/queue/id:000003,sync:main,src:000001"
echo state > "$own/queue/.state"
echo "attest-worst: cpu.fa2.fp32 0.5"; sleep 1)");
  write_file(scratch() + "/bin/fuzz_case.options", "[libfuzzer]\nmax_len = 16384\ndict = fuzz_case.dict\n");
  write_file(scratch() + "/bin/fuzz_case.dict", "\"x\"\n");
  fs::create_directories(scratch() + "/attest-fuzz/case");
  fs::create_directories(scratch() + "/stored/case");
  write_file(scratch() + "/attest-fuzz/case/old", "given\n");
  write_file(scratch() + "/stored/case/mine", "stored\n");
  const Ran r = run_afl("--seconds 1 --jobs 2 --stored stored --seed 7 --kernels 'cpu.*'");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find(" 1200 executions"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("30 edges, 4 inputs, error/bound 0.5000 of cpu.fa2.fp32, 0 findings"), std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("PASS"), std::string::npos) << r.out;
  EXPECT_EQ(contents_of("attest-fuzz/case"),
            (std::vector<std::string>{"both\n", "given\n", "mine-main\n", "mine-worker-1\n"}));
  EXPECT_FALSE(fs::exists(scratch() + "/attest-fuzz/case.afl"));
  EXPECT_EQ(read_file(scratch() + "/start"), "mine\nold\n");
  const std::string arguments = read_file(scratch() + "/arguments");
  EXPECT_EQ(times(arguments, "-M main "), 1) << arguments;
  EXPECT_EQ(times(arguments, "-S worker-1 "), 1) << arguments;
  EXPECT_EQ(times(arguments, " -V 1 "), 2) << arguments;
  EXPECT_EQ(times(arguments, " -G 16384 "), 2) << arguments;
  EXPECT_EQ(times(arguments, "/bin/fuzz_case.dict -- /"), 2) << arguments;
  const auto seed_of = [&](std::size_t at) { return arguments.substr(at, arguments.find(' ', at + 3) - at); };
  EXPECT_NE(seed_of(arguments.find("-s ")), seed_of(arguments.rfind("-s "))) << arguments;
  const std::string environment = read_file(scratch() + "/environment");
  EXPECT_NE(environment.find("AFL_NO_UI=1\n"), std::string::npos) << environment;
  EXPECT_NE(environment.find("ATTEST_FUZZ_CASES=\n"), std::string::npos) << environment;
  EXPECT_NE(environment.find("ATTEST_FUZZ_KERNELS=cpu.*\n"), std::string::npos) << environment;
  const std::string log = read_file(scratch() + "/attest-fuzz/log.jsonl");
  EXPECT_EQ(log.find("features"), std::string::npos) << log;
  EXPECT_NE(log.find("\"engine\":\"afl\""), std::string::npos) << log;
}

TEST(FuzzAfl, NothingToBeginWithIsOneInput) {
  make_target("case", "exit 0");
  make_afl(std::string(stats) + "cat \"$start\"/* > ../../start");
  EXPECT_EQ(run_afl("--seconds 1 --jobs 1 --stored none").code, 0);
  EXPECT_EQ(read_file(scratch() + "/start"), "0");
  EXPECT_TRUE(fs::is_empty(scratch() + "/attest-fuzz/case"));  // it was not found
}

TEST(FuzzAfl, ACrashBecomesACase) {
  make_target("forward", "cat \"$1\" > ../../replayed; echo \"$ATTEST_FUZZ_KERNELS\" >> ../../kernels\n" +
                             std::string(broken_law));
  make_afl(std::string(stats) + R"(echo one > "$own/crashes/id:000000,sig:06,src:000000,time:9"
echo two > "$own/crashes/id:000001,sig:06,src:000000,time:9"
echo "not a crash" > "$own/crashes/README.txt"
sleep 3)");
  const Ran r = run_afl("--seconds 3 --jobs 2 --stored none --kernels cpu.fa2.fp32");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING cpu.fa2.fp32 breaks encloses: o[0] is far off"), std::string::npos) << r.out;
  EXPECT_EQ(times(r.out, "FINDING"), 1) << r.out;
  EXPECT_EQ(r.out.find("does not show it again"), std::string::npos) << r.out;
  ASSERT_EQ(contents_of("f").size(), 1u);
  EXPECT_NE(contents_of("f")[0].find("found by fuzz_forward"), std::string::npos);
  // Two workers with the same two crashes; each was replayed once, with the kernels of the campaign.
  EXPECT_EQ(read_file(scratch() + "/replayed"), "two\n");
  EXPECT_EQ(read_file(scratch() + "/kernels"), "cpu.fa2.fp32\ncpu.fa2.fp32\n");
  EXPECT_TRUE(contents_of("attest-fuzz/findings").empty());  // the case says it
}

TEST(FuzzAfl, ACrashWithoutACaseLeavesItsBytes) {
  make_target("verdict", "exit 1");
  make_afl(std::string(stats) + "echo one > \"$own/crashes/id:000000,sig:11,src:000000,time:9\"");
  const Ran r = run_afl("--seconds 1 --jobs 1 --stored none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING fuzz_verdict died: signal 11 (Segmentation fault)"), std::string::npos) << r.out;
  EXPECT_EQ(contents_of("attest-fuzz/findings"), (std::vector<std::string>{"one\n"}));
}

TEST(FuzzAfl, ACrashThatDoesNotComeAgainIsSaidToBeOne) {
  make_target("verdict", "exit 0");
  make_afl(std::string(stats) + "echo one > \"$own/crashes/id:000000,sig:06,src:000000,time:9\"");
  const Ran r = run_afl("--seconds 1 --jobs 1 --stored none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("signal 6 (Aborted); alone, its bytes do no harm"), std::string::npos) << r.out;
}

// afl-fuzz goes on after crashes: many of them are no reason to say that the target cannot begin.
TEST(FuzzAfl, CrashesDoNotEndItBeforeTheirLimit) {
  make_target("verdict", "exit 1");
  make_afl(R"(for n in $(seq -w 99); do echo $n > "$own/crashes/id:0000$n,sig:06,time:9"; [ $n != 49 ] || sleep 2; done
sleep 2)" + std::string(stats));
  const Ran r = run_afl("--seconds 30 --jobs 1 --stored none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("it died 50 times"), std::string::npos) << r.out;
  EXPECT_EQ(contents_of("attest-fuzz/findings").size(), 99u);
}

// afl-fuzz leaves such an input out and says so in a line; a kernel that the stored inputs break must not look right.
TEST(FuzzAfl, AnInputThatCrashesAtTheBeginningIsAFinding) {
  make_target("forward", broken_law);
  make_afl(std::string(stats) + R"(echo old > "$own/queue/id:000002,time:0,execs:0,orig:old"
echo "[!] WARNING: Test case 'id:000002,time:0,execs:0,orig:old' results in a crash, skipping"; sleep 1)");
  const Ran r = run_afl("--seconds 1 --jobs 1 --stored none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING cpu.fa2.fp32 breaks encloses"), std::string::npos) << r.out;
}

TEST(FuzzAfl, AKilledCampaignLosesNothing) {
  make_target("forward", broken_law);
  make_afl(std::string(stats) + R"(if [ -e ../../again ]; then cat "$start"/* >> ../../start; exit 0; fi
echo kept > "$own/queue/id:000001,src:000000,time:9,execs:40,op:havoc,rep:2"; sleep 60)");
  run_shell("PATH=\"$PWD/path:$PATH\"; '" ATTEST_TOOL
            "' fuzz --engine afl --bin bin --findings f --jobs 1 --stored none & p=$!; "
            "while ! [ -e attest-fuzz/forward.afl/sync/main/queue/id* ]; do sleep 0.1; done; kill -KILL $p; wait $p");
  const std::string own = scratch() + "/attest-fuzz/forward.afl/sync/main";
  // A crash that came while nobody looked any more.
  write_file(own + "/crashes/id:000000,sig:06,src:000000,time:9", "one\n");
  write_file(scratch() + "/again", "");
  ASSERT_TRUE(fs::exists(own + "/queue/id:000001,src:000000,time:9,execs:40,op:havoc,rep:2"));
  const Ran r = run_afl("--seconds 1 --jobs 1 --stored none");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_EQ(times(r.out, "FINDING cpu.fa2.fp32 breaks encloses"), 1) << r.out;
  EXPECT_EQ(contents_of("attest-fuzz/forward"), (std::vector<std::string>{"kept\n"}));
  EXPECT_TRUE(read_file(scratch() + "/start").starts_with("kept\n"));  // which the workers began with
}

TEST(FuzzAfl, CtrlCEndsItInOrder) {
  make_target("case", "exit 0");
  make_afl(std::string(stats) + R"(echo early > "$own/queue/id:000001,src:000000,time:9,execs:40"
trap 'echo late > "$own/queue/id:000002,src:000000,time:9,execs:50"; exit 0' INT
while :; do sleep 0.1; done)");
  const Ran r =
      run_shell("PATH=\"$PWD/path:$PATH\"; '" ATTEST_TOOL
                "' fuzz --engine afl --bin bin --jobs 1 --stored none --findings f & p=$!; sleep 2; kill -INT $p; "
                "wait $p");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("interrupted"), std::string::npos) << r.out;
  EXPECT_EQ(contents_of("attest-fuzz/case"), (std::vector<std::string>{"early\n", "late\n"}));
}

TEST(FuzzAfl, AnAbortIsIncomplete) {
  make_target("step", "exit 0");
  const std::string abort =
      R"(printf '\033[1;91m[-] PROGRAM ABORT : \033[0mno handshake\n         Location : x(), x.c:1\n'; exit 1)";
  make_afl(abort);
  const Ran r = run_afl("--seconds 2 --jobs 2 --stored none");
  EXPECT_EQ(r.code, 3) << r.out << r.err;
  EXPECT_NE(r.out.find("a worker ended: [-] PROGRAM ABORT : no handshake\n"), std::string::npos) << r.out;
  make_afl("echo 'no kernel for this target matches x'\n" + abort);
  const Ran none = run_afl("--seconds 2 --jobs 2 --stored none");
  EXPECT_NE(none.out.find("a worker ended: no kernel for this target matches x"), std::string::npos) << none.out;
}

TEST(FuzzAfl, UsageIsTaught) {
  make_target("case", "exit 0");
  // Nothing but the tool itself is found on this PATH.
  const Ran none = run_shell("PATH=/nowhere '" ATTEST_TOOL "' fuzz --engine afl --bin bin --seconds 1");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("apt-get install afl++"), std::string::npos) << none.err;
  make_afl("exit 0");
  EXPECT_EQ(run_tool("fuzz --engine hongg --bin bin --seconds 1").code, 2);
  const Ran race = run_afl("--mutants --seconds 1");
  EXPECT_EQ(race.code, 2);
  EXPECT_NE(race.err.find("leave --engine out"), std::string::npos) << race.err;
  const Ran nowhere =
      run_shell("PATH=\"$PWD/path:$PATH\" '" ATTEST_TOOL "' fuzz --engine afl --bin nowhere --seconds 1");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("cmake --preset afl"), std::string::npos) << nowhere.err;
}

}  // namespace
}  // namespace attest::testing
