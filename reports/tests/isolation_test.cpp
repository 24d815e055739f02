// A kernel that crashes, hangs or writes where it must not is a failure with a reason and a case, and the gate goes on:
// each entry by a real plugin, beside an honest kernel that keeps its PASS.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "reports/tests/run_tool.h"
#include "reports/tool/isolation.h"

namespace attest::testing {
namespace {

namespace fs = std::filesystem;

// A sanitizer stops these kernels itself: the verdict is the same, the words are its own.
const bool sanitized = under_sanitizer();

nlohmann::json report() { return nlohmann::json::parse(read_file(scratch() + "/j.json")); }

Ran gate(const std::string& kind, const std::string& more = "", int cases = 8) {
  return run_tool("gate --plugin " + plugin(kind) + " --cases " + std::to_string(cases) +
                  " --corpus none --laws encloses --json j.json " + more);
}

std::string command_behind(const std::string& text, std::size_t from) {
  const auto begin = text.find("reproduce: ", from) + 11;
  return text.substr(begin, text.find('\n', begin) - begin);
}

struct Misbehaviour {
  const char* kind;
  std::string reason;
  std::string flags = "";
};
void PrintTo(const Misbehaviour& m, std::ostream* out) { *out << m.kind; }

class Isolation : public ::testing::TestWithParam<Misbehaviour> {};

TEST_P(Isolation, IsAFailureWithReasonAndCaseAndTheGateGoesOn) {
  const Misbehaviour& m = GetParam();
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const Ran r = gate(m.kind, m.flags);
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  const auto line = r.out.find("FAIL encloses  test.first: the kernel " + m.reason);
  ASSERT_NE(line, std::string::npos) << r.out;

  const auto j = report();
  EXPECT_EQ(j["verdict"], "fail");
  const auto &first = j["kernels"][0]["laws"][0], &second = j["kernels"][1]["laws"][0];
  EXPECT_EQ(first["verdict"], "fail");
  EXPECT_EQ(first["failure"]["message"].get<std::string>().find("the kernel " + m.reason), 0u) << first.dump(2);
  EXPECT_EQ(second["verdict"], "pass") << "its neighbour is honest\n" << second.dump(2);
  EXPECT_EQ(second["counts"]["pass"], 8) << second.dump(2);

  EXPECT_TRUE(fs::exists(scratch() + "/" + first["failure"]["case"].get<std::string>())) << first.dump(2);
  const Ran again = run_shell(command_behind(r.out, line));
  EXPECT_EQ(again.code, 1) << again.out << again.err;
  EXPECT_NE(again.out.find("the kernel " + m.reason), std::string::npos) << again.out << again.err;
}

const Misbehaviour misbehaviours[] = {
    {"segfaults", "crashed with SIGSEGV: wrote through a null pointer"},
    {"overflows_stack", "crashed with SIGSEGV: the stack overflowed"},
    {"hangs", "did not return within 1 s", "--limit-seconds 1"},
    {"exhausts_memory", "crashed with SIGSEGV: wrote through a null pointer; its memory is exhausted (--limit-memory)",
     "--limit-memory 0.1"},
    {"writes_before", "crashed with SIGSEGV: wrote 4 bytes before the begin of o"},
    {"writes_past", "crashed with SIGSEGV: wrote 1 byte past the end of o"},
    {"reads_past", "crashed with SIGSEGV: read 1 byte past the end of k"},
    {"reads_before", "crashed with SIGSEGV: read 4 bytes before the begin of k"},
    {"writes_input", "crashed with SIGSEGV: wrote to q at byte 0 of its memory; inputs must not be written"},
    {"workspace_overrun", "crashed with SIGSEGV: wrote 1 byte past the end of the workspace"},
};
INSTANTIATE_TEST_SUITE_P(EachEntry, Isolation, ::testing::ValuesIn(misbehaviours),
                         [](const auto& info) { return std::string(info.param.kind); });

TEST(IsolationOfAPlugin, AbortAndExitAreFailuresToo) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const std::pair<const char*, const char*> kinds[] = {
      {"crashes", "the kernel crashed with SIGABRT"},
      {"exits", "the kernel ended the process with exit status 0"},
      {"exits_clean", "the kernel ended the process with exit status 0"}};
  for (const auto& [kind, reason] : kinds) {
    const Ran r = gate(kind);
    EXPECT_EQ(r.code, 1) << kind << "\n" << r.out << r.err;
    const auto line = r.out.find(std::string("FAIL encloses  test.first: ") + reason);
    ASSERT_NE(line, std::string::npos) << kind << "\n" << r.out;
    EXPECT_EQ(report()["verdict"], "fail") << kind;
    const Ran again = run_shell(command_behind(r.out, line));
    EXPECT_EQ(again.code, 1) << kind << "\n" << again.out << again.err;
    EXPECT_NE(again.out.find(reason), std::string::npos) << kind << "\n" << again.out;
  }
}

TEST(IsolationOfAPlugin, AnExceptionThroughTheInterfaceIsAFailure) {
  const Ran r = gate("throws");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("the kernel threw: no such tile"), std::string::npos) << r.out;
  EXPECT_EQ(report()["kernels"][1]["laws"][0]["verdict"], "pass");
  EXPECT_EQ(run_shell(command_behind(r.out, 0)).code, 1);
}

TEST(IsolationOfAPlugin, CanariesSeeWhatPagesDoNot) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  // The first case stands at a page's end, where the element before O is in the gap that canaries fill.
  const Ran r = gate("writes_before", "--laws untouched", 1);
  EXPECT_NE(r.out.find("FAIL untouched  test.first: o: written outside of the tensor, 1 byte before its begin"),
            std::string::npos)
      << r.out;
}

TEST(IsolationOfAPlugin, AKernelThatCrashesOnSomeCasesKeepsTheOthers) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const auto run = [](const std::string& jobs) {
    const Ran r = gate("sometimes", "--jobs " + jobs, 40);
    EXPECT_EQ(r.code, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("STOPPED test.first encloses: after 3 crashes; "), std::string::npos) << r.out;
    auto j = report();
    j.erase("seconds");
    return j;
  };
  const auto one = run("1"), three = run("3");
  EXPECT_EQ(one.dump(), three.dump()) << "what is counted depends on the number of jobs";
  const auto& first = one["kernels"][0]["laws"][0];
  EXPECT_EQ(first["counts"]["fail"], 3) << first.dump(2);
  EXPECT_GT(first["counts"]["pass"], 0) << first.dump(2);
  EXPECT_EQ(first["stopped"], "after 3 crashes");
  EXPECT_EQ(first["cases"].get<int>() + first["skipped"].get<int>(), 40) << first.dump(2);
  // A crash shrinks like any failure: to the shortest sequence on which it still happens.
  const std::string file = first["failure"]["case"];
  EXPECT_NE(read_file(scratch() + "/" + file).find("\"tk\": 17"), std::string::npos)
      << read_file(scratch() + "/" + file);
}

TEST(IsolationOfAPlugin, ACrashInSupportsIsAFailureWithoutACase) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const Ran r = gate("crashes_asked");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("FAIL encloses  test.first: the kernel crashed with SIGABRT"), std::string::npos) << r.out;
  EXPECT_EQ(report()["verdict"], "fail");
}

TEST(IsolationOfAPlugin, AThreadThatCrashesAfterwardsIsNotLost) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const Ran r = gate("leaves_a_thread", "--jobs 1", 200);
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("the kernel crashed with SIGSEGV"), std::string::npos) << r.out;
}

TEST(IsolationOfAPlugin, HonestItGivesTheSameReportAsInThisProcess) {
  const auto run = [](const std::string& more) {
    EXPECT_EQ(gate("honest", "--laws untouched --laws poison " + more).code, 0) << more;
    auto j = report();
    j.erase("seconds");
    return j.dump();
  };
  const std::string isolated = run("");
  EXPECT_EQ(isolated, run("--no-isolate"));
  EXPECT_EQ(isolated, run("--jobs 3"));
}

TEST(IsolationOfAPlugin, AWrongOneFailsInTheSameWayAsInThisProcess) {
  const auto run = [](const std::string& more) {
    EXPECT_EQ(gate("wrong", more).code, 1) << more;
    auto j = report();
    j.erase("seconds");
    return j.dump();
  };
  EXPECT_EQ(run(""), run("--no-isolate"));
}

TEST(IsolationOfOurOwn, ChangesNothing) {
  const std::string small = "gate --kernels 'cpu.*' --laws encloses --laws untouched --cases 2 --corpus none --json -";
  auto here = run_tool(small).json(), isolated = run_tool(small + " --isolate").json();
  here.erase("seconds"), isolated.erase("seconds");
  EXPECT_EQ(here.dump(), isolated.dump());
}

TEST(IsolationOfAPlugin, WithoutItACrashEndsTheGate) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const Ran r = gate("segfaults", "--no-isolate --jobs 1");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.err.find("CRASH (SIGSEGV)"), std::string::npos) << r.err;
  EXPECT_EQ(report()["verdict"], "crashed");
}

TEST(IsolationOfAPlugin, LimitsAreChecked) {
  for (const std::string bad :
       {"--limit-seconds 0", "--limit-seconds x", "--limit-memory -1", "--isolate --no-isolate"})
    EXPECT_EQ(gate("honest", bad).code, 2) << bad;
}

// ---- a gate that is stopped while a kernel hangs ------------------------------------------------------------------

// Processes of the tool that this test has started and that still run.
int left_over() {
  int n = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string line = read_file(entry.path().string() + "/cmdline");
    n += line.find("hang-here.json") != std::string::npos && line.find(ATTEST_TOOL) == 0;
  }
  return n;
}

int left_over_in_the_end() {
  for (int tries = 0; tries < 100 && left_over() > 0; ++tries) usleep(100000);
  return left_over();
}

// Starts a gate whose kernel hangs, and signals it once it hangs. "$!" of the shell is the tool itself.
Ran signalled_while_hanging(const std::string& signal) {
  return run_shell("rm -f hang-here.json; '" ATTEST_TOOL "' gate --plugin '" + plugin("hangs") +
                   "' --kernels test.first --corpus none --laws encloses --json hang-here.json & tool=$!; "
                   "for n in $(seq 600); do grep -q '\"checks\": ' hang-here.json 2>/dev/null && break; sleep 0.1; "
                   "done; kill -" +
                   signal + " $tool; wait $tool");
}

TEST(IsolationOfAPlugin, KilledWhileAKernelHangsItLeavesAReportAndNoProcess) {
  const Ran r = signalled_while_hanging("KILL");
  EXPECT_EQ(r.code, 137) << r.out << r.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch() + "/hang-here.json"))["verdict"], "running");
  EXPECT_EQ(left_over_in_the_end(), 0);
}

TEST(IsolationOfAPlugin, InterruptedWhileAKernelHangsItEndsSoonWithWhatItHas) {
  const auto start = std::chrono::steady_clock::now();
  const Ran r = signalled_while_hanging("INT");
  EXPECT_EQ(r.code, 130) << r.out << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50)) << "less than --limit-seconds";
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch() + "/hang-here.json"))["verdict"], "interrupted");
  EXPECT_EQ(left_over_in_the_end(), 0);
}

// ---- kernels that are asked next to nothing -----------------------------------------------------------------------

TEST(Rejecting, NearlyEverythingIsSaidAloud) {
  const Ran r = gate("rejects_most", "--quiet", 40);
  EXPECT_NE(r.out.find("REJECTS test.first: 9"), std::string::npos) << r.out;
  EXPECT_EQ(gate("honest").out.find("REJECTS"), std::string::npos);
}

}  // namespace
}  // namespace attest::testing
