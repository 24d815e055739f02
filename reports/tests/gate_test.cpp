// The gate's promises to scripts: exit codes, JSON, JUnit, determinism, shards, budgets, waivers.
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "properties/device.h"
#include "reports/tests/run_tool.h"

namespace attest::testing {
namespace {

// A small gate: our fp32 forward kernels under two laws.
const std::string small = "gate --kernels 'cpu.*' --laws encloses --laws unwritten --cases 2 --corpus none ";

nlohmann::json without_times(nlohmann::json j) {
  j.erase("seconds");
  return j;
}

TEST(Gate, PassesAndSaysSo) {
  const Ran r = run_tool(small);
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("\nPASS  seed 1: "), std::string::npos) << r.out;
}

TEST(Gate, RefusesWhatItCannotDo) {
  for (const std::string bad : {"",
                                "gate --no-such-flag",
                                "gate --kernels 'no.such.*'",
                                "gate --laws no-such-law",
                                "gate --shard 3/2",
                                "gate --shard 1/2x",
                                "gate --seconds -1",
                                "gate --cases many",
                                "gate --plugin ./absent.so",
                                "gate --waivers absent.json",
                                "gate --corpus absent",
                                "gate --json absent/x.json",
                                "check absent.case",
                                "kernels --contract no.such.kernel",
                                "gate --seconds nan",
                                "gate --seed -1",
                                "gate --seed 18446744073709551616",
                                "gate --seed 1.5",
                                "gaet",
                                "gate --out /dev/null/x"}) {
    const Ran r = run_tool(bad);
    EXPECT_EQ(r.code, 2) << bad << "\n" << r.out << r.err;
    EXPECT_FALSE(r.err.empty()) << bad;
  }
  EXPECT_EQ(run_tool("--help").code, 0);
  EXPECT_EQ(run_tool("gate --help").code, 0);
}

TEST(Gate, ARefusalNamesWhatItRefuses) {
  const std::pair<const char*, const char*> bad[] = {{"gaet", "gaet"},
                                                     {"gate --seed 18446744073709551616", "18446744073709551616"},
                                                     {"gate --seed -1", "--seed"},
                                                     {"gate --seconds nan", "--seconds"},
                                                     {"gate --out plain", "--out plain"}};
  write_file(scratch() + "/plain", "a file");
  for (const auto& [command, named] : bad) {
    const Ran r = run_tool(command);
    EXPECT_EQ(r.code, 2) << command;
    EXPECT_NE(r.err.find(named), std::string::npos) << command << "\n" << r.err;
  }
}

TEST(Gate, AStandardOutputThatCannotBeWrittenIsAnError) {
  for (const std::string command :
       {"laws", "kernels", "--help", "gate --kernels cpu.fa2.fp32 --laws encloses --cases 1 --corpus none"})
    for (const std::string where : {" >/dev/full", " >&-"}) {
      const Ran r = run_tool(command + where);
      EXPECT_EQ(r.code, 2) << command << where;
      EXPECT_NE(r.err.find("standard output"), std::string::npos) << command << where << "\n" << r.err;
    }
}

TEST(Gate, ACaseThatCannotBeSavedDoesNotTakeTheVerdictAlong) {
  const Ran green = run_tool(small + "--out made/deep");
  EXPECT_EQ(green.code, 0) << green.err;
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/made")) << "an empty directory was left behind";
  // Whatever would be renamed to the case's name meets a directory of that name.
  const std::string wrong =
      "gate --plugin " + plugin("wrong") + " --kernels test.first --laws encloses --cases 2 --corpus none ";
  ASSERT_EQ(run_tool(wrong).code, 1);
  ASSERT_EQ(run_shell("cd attest-failures && for f in *; do rm $f; mkdir $f; done").code, 0);
  const Ran r = run_tool(wrong + "--json j.json");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("case not saved: "), std::string::npos) << r.out;
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch() + "/j.json"))["verdict"], "fail");
}

TEST(Gate, JsonSaysWhatWasChecked) {
  const Ran r = run_tool(small + "--json -");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = r.json();
  EXPECT_EQ(j["schema"], "attest-gate/1");
  EXPECT_EQ(j["verdict"], "pass");
  EXPECT_EQ(j["seed"], 1);
  EXPECT_FALSE(j["truncated"]);
  EXPECT_FALSE(j["interrupted"]);
  EXPECT_EQ(j["build"].get<std::string>().size(), 16u);
  std::int64_t counted = 0, cases = 0;
  for (const char* o : {"pass", "fail", "vacuous", "undecided", "rejected", "not_run"})
    counted += j["counts"][o].get<std::int64_t>();
  for (const auto& k : j["kernels"]) {
    EXPECT_EQ(k["contract_hash"].get<std::string>().size(), 16u);
    for (const auto& law : k["laws"]) cases += law["cases"].get<std::int64_t>();
  }
  EXPECT_GT(cases, 0);
  EXPECT_EQ(cases, counted);
  EXPECT_EQ(j["counts"]["fail"], 0);
}

TEST(Gate, JUnitHasOneTestcaseForEachKernelAndLaw) {
  const Ran r = run_tool("gate --plugin " + plugin("wrong") +
                         " --laws encloses --laws unwritten --cases 3 --corpus none --junit j.xml --json j.json");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(scratch() + "/j.xml", tree);
  const auto& suite = tree.get_child("testsuite");
  std::size_t cases = 0, failures = 0;
  for (const auto& [tag, node] : suite) {
    if (tag != "testcase") continue;
    ++cases;
    if (const auto failure = node.get_child_optional("failure")) {
      ++failures;
      const auto line = failure->get<std::string>("<xmlattr>.message");
      EXPECT_NE(line.find("reproduce: "), std::string::npos) << line;
      EXPECT_NE(line.find("encloses"), std::string::npos) << line;
    }
  }
  EXPECT_EQ(cases, 4u);  // two kernels, two laws
  EXPECT_EQ(failures, 2u);
  EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.tests"), cases);
  EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.failures"), failures);
}

TEST(Gate, SameSeedSameReportWhateverTheJobs) {
  const auto one = run_tool(small + "--seed 5 --jobs 1 --json -"),
             three = run_tool(small + "--seed 5 --jobs 3 --json -");
  EXPECT_EQ(without_times(one.json()).dump(), without_times(three.json()).dump());
  const auto other = run_tool(small + "--seed 6 --json -");
  EXPECT_NE(without_times(one.json())["kernels"].dump(), without_times(other.json())["kernels"].dump());
}

TEST(Gate, ShardsPartitionTheWholeExactly) {
  using Key = std::pair<std::string, std::string>;
  const auto pairs = [](const nlohmann::json& j) {
    std::map<Key, nlohmann::json> out;
    for (const auto& k : j["kernels"])
      for (const auto& law : k["laws"]) out[{k["name"], law["law"]}] = law;
    return out;
  };
  const auto whole = pairs(run_tool(small + "--json -").json());
  std::map<Key, nlohmann::json> together;
  for (const std::string shard : {"1/3", "2/3", "3/3"})
    for (const auto& [key, law] : pairs(run_tool(small + "--json - --shard " + shard).json()))
      EXPECT_TRUE(together.emplace(key, law).second) << key.first << " " << key.second << " is in two shards";
  EXPECT_EQ(together, whole);
}

TEST(Gate, AShortBudgetIsMarkedTruncatedAndIsNoPass) {
  const Ran r = run_tool("gate --corpus none --cases 100000 --seconds 0.05 --json -");
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_TRUE(r.json()["truncated"]);
  EXPECT_LT(r.json()["checks"], r.json()["planned"]);
  EXPECT_NE(r.err.find("truncated"), std::string::npos) << r.err;
}

// Starts a gate in the background and signals it once its report says that it runs: no fixed delay is long enough on a
// machine that is busy. A shell starts background jobs with SIGINT ignored, so that the tool's own handler is what this
// shows.
Ran signalled_gate(const std::string& signal) {
  return run_shell("rm -f j.json; '" ATTEST_TOOL
                   "' gate --corpus none --cases 1000000 --json j.json & tool=$!; "
                   "for n in $(seq 600); do grep -q '\"checks\": [1-9]' j.json 2>/dev/null && break; sleep 0.1; done; "
                   "kill -" +
                   signal + " $tool; wait $tool");
}

TEST(Gate, InterruptedItReportsWhatItHas) {
  const Ran r = signalled_gate("INT");
  EXPECT_EQ(r.code, 130) << r.out << r.err;
  const auto j = nlohmann::json::parse(read_file(scratch() + "/j.json"));
  EXPECT_TRUE(j["interrupted"]);
  EXPECT_EQ(j["verdict"], "interrupted");
  EXPECT_NE(r.out.find("nothing is lost"), std::string::npos) << r.out;
}

TEST(Gate, TerminatedItLeavesAReadableReport) {
  const Ran r = signalled_gate("TERM");
  EXPECT_EQ(r.code, 143) << r.out << r.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch() + "/j.json"))["verdict"], "running");
}

TEST(Gate, JsonOnTheDeviceOfStandardOutputIsJsonOnStandardOutput) {
  const Ran r = run_tool(small + "--json /dev/stdout");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["verdict"], "pass");
}

TEST(Gate, KilledItLeavesAReadablePartialReport) {
  run_shell("timeout -s KILL 4 '" ATTEST_TOOL "' gate --corpus none --cases 1000000 --json j.json");
  const auto j = nlohmann::json::parse(read_file(scratch() + "/j.json"));
  EXPECT_EQ(j["verdict"], "running");
  EXPECT_GT(j["checks"], 0);
}

TEST(Gate, WhatIsRequiredMustHaveAPass) {
  EXPECT_EQ(run_tool(small + "--require cpu").code, 0);
  EXPECT_EQ(run_tool(small + "--require 'cpu.*'").code, 0);
  const Ran r = run_tool(small + "--require no-such-family");
  EXPECT_EQ(r.code, 3) << r.out;
  EXPECT_NE(r.out.find("no-such-family"), std::string::npos) << r.out;
}

// ---- waivers ------------------------------------------------------------------------------------------------------

std::string ledger(const std::string& kernel, const std::string& law, const std::string& expires) {
  return R"({"waivers": [{"kernel": ")" + kernel + R"(", "law": ")" + law +
         R"(", "reason": "a known defect", "expires": ")" + expires + "\"}]}";
}

Ran gate_with(const std::string& kind, const std::string& ledger_text) {
  write_file(scratch() + "/ledger.json", ledger_text);
  return run_tool("gate --plugin " + plugin(kind) +
                  " --kernels test.first --laws encloses --laws unwritten --cases 3 --corpus none --waivers "
                  "ledger.json --json j.json");
}

TEST(Waivers, AWaivedFailureDoesNotFailButStaysVisible) {
  const Ran r = gate_with("wrong", ledger("test.first", "encloses", "2999-12-31"));
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("WAIVED FAIL encloses"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("a known defect"), std::string::npos) << r.out;
  const auto j = nlohmann::json::parse(read_file(scratch() + "/j.json"));
  EXPECT_EQ(j["waivers"][0]["state"], "used");
  EXPECT_GT(j["counts"]["fail"], 0);
}

TEST(Waivers, ExpiredOrGoneTheyFail) {
  const Ran expired = gate_with("wrong", ledger("test.first", "encloses", "2001-01-31"));
  EXPECT_EQ(expired.code, 1) << expired.out;
  EXPECT_NE(expired.out.find("expired"), std::string::npos) << expired.out;
  const Ran gone = gate_with("honest", ledger("test.first", "encloses", "2999-12-31"));
  EXPECT_EQ(gone.code, 1) << gone.out;
  EXPECT_NE(gone.out.find("the failure is gone"), std::string::npos) << gone.out;
  // One for a kernel that is not part of this run says nothing either way.
  EXPECT_EQ(gate_with("honest", ledger("cpu.other", "encloses", "2999-12-31")).code, 0);
}

TEST(Waivers, ABadLedgerIsRefusedByField) {
  const std::pair<std::string, std::string> bad[] = {
      {"{", "not JSON"},
      {"[]", "waivers"},
      {R"({"waivers": [{"kernel": "k"}]})", "waivers[0].law"},
      {R"({"waivers": [{"kernel": "k", "law": "encloses", "reason": "", "expires": "2999-01-01"}]})", "reason"},
      {ledger("k", "no-such-law", "2999-01-01"), "no-such-law"},
      {ledger("k", "encloses", "2999-02-30"), "expires"},
      {ledger("k", "encloses", "soon"), "expires"},
  };
  for (const auto& [text, named] : bad) {
    const Ran r = gate_with("honest", text);
    EXPECT_EQ(r.code, 2) << text;
    EXPECT_NE(r.err.find("ledger.json"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(named), std::string::npos) << r.err;
  }
}

// A device that is not here is no failure, is not called a pass, and may be required.
TEST(Gate, AnAbsentDeviceIsNotRun) {
  if (!why_no_device(ATTN_DEVICE_CUDA)) GTEST_SKIP() << "a CUDA device is here";
  const Ran open = run_tool("gate --device cuda --cases 1 --corpus none --json g.json");
  EXPECT_EQ(open.code, 0) << open.out << open.err;
  EXPECT_NE(open.out.find("NOT_RUN cuda.fa1.fp32 to cuda.merge-olse.fp32 (21 kernels): "), std::string::npos)
      << open.out;
  EXPECT_NE(open.out.find("NOT_RUN  seed 1: 0 checks, 0 kernels"), std::string::npos) << open.out;
  const auto report = nlohmann::json::parse(read_file(scratch() + "/g.json"));
  EXPECT_EQ(report["verdict"], "not_run");
  EXPECT_EQ(report["counts"]["pass"], 0);
  const Ran required = run_tool("gate --device cuda --require cuda --cases 1 --corpus none");
  EXPECT_EQ(required.code, 3) << required.out;
  EXPECT_NE(required.out.find("NO PASS required cuda.fa2.bf16.p16: not one PASS"), std::string::npos) << required.out;
  EXPECT_EQ(run_tool("gate --device tpu").code, 2);
  EXPECT_EQ(run_tool("gate --device cuda --kernels 'cpu.*'").code, 2);
}

}  // namespace
}  // namespace attest::testing
