// The soak: seeds, the log, going on with it, and what it refuses.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "reports/tests/run_tool.h"
#include "reports/tool/soak.h"

namespace attest::testing {
namespace {

// A round of about a hundred checks.
const std::string small =
    "gate --soak --kernels 'variant.fp32.l*' --laws encloses --laws hull --cases 4 --corpus none ";

std::vector<nlohmann::json> lines(const std::string& file) {
  std::vector<nlohmann::json> out;
  std::istringstream in(read_file(scratch() + "/" + file));
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

// All that a round says but its times.
std::string untimed(nlohmann::json round) {
  round.erase("seconds");
  return round.dump();
}

TEST(Soak, RoundsHaveSeedsOfTheirOwn) {
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : {0u, 1u, 2u})
    for (std::int64_t round = 0; round < 1000; ++round) seeds.insert(round_seed(seed, round));
  EXPECT_EQ(seeds.size(), 3000u);
  EXPECT_LT(*seeds.rbegin(), std::uint64_t{1} << 53);
}

TEST(Soak, LogsEveryRound) {
  const Ran r = run_tool(small + "--rounds 2 --seed 5 --log s.jsonl");
  ASSERT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_TRUE(r.out.starts_with("PASS  soak of seed 5: 2 rounds, ")) << r.out;
  const auto log = lines("s.jsonl");
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0]["schema"], "attest-soak/1");
  EXPECT_EQ(log[0]["build"].get<std::string>().size(), 16u);
  for (int n = 0; n < 2; ++n) {
    const auto& round = log[static_cast<std::size_t>(n) + 1];
    EXPECT_EQ(round["round"], n);
    EXPECT_EQ(round["seed"], round_seed(5, n));
    EXPECT_TRUE(round["complete"]);
    std::int64_t counted = 0;
    for (const auto& [outcome, count] : round["counts"].items()) counted += count.get<std::int64_t>();
    EXPECT_EQ(round["checks"], counted);
    EXPECT_GT(round["counts"]["pass"], 0);
    EXPECT_TRUE(round["failures"].empty());
    for (const auto& [kernel, counts] : log[0]["kernels"].items()) EXPECT_TRUE(round["worst_ratio"].contains(kernel));
  }
  EXPECT_NE(log[1]["worst_ratio"], log[2]["worst_ratio"]);
}

TEST(Soak, GoesOnWhereTheLogEnds) {
  ASSERT_EQ(run_tool(small + "--rounds 3 --log whole.jsonl --jobs 1").code, 0);
  ASSERT_EQ(run_tool(small + "--rounds 1 --log parts.jsonl --jobs 2").code, 0);
  const Ran r = run_tool(small + "--rounds 3 --log parts.jsonl --jobs 2");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("goes on after 1 rounds"), std::string::npos) << r.err;
  const auto whole = lines("whole.jsonl"), parts = lines("parts.jsonl");
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_EQ(untimed(whole[n]), untimed(parts[n])) << n;
  // Nothing left to do: the totals again.
  EXPECT_EQ(run_tool(small + "--rounds 3 --log parts.jsonl").out.substr(0, 40), r.out.substr(0, 40));
  EXPECT_EQ(lines("parts.jsonl").size(), parts.size());
}

TEST(Soak, ALineThatWasCutOffIsDoneAgain) {
  ASSERT_EQ(run_tool(small + "--rounds 2 --log s.jsonl").code, 0);
  const std::string whole = read_file(scratch() + "/s.jsonl");
  write_file(scratch() + "/s.jsonl", whole.substr(0, whole.size() - 20));
  const Ran r = run_tool(small + "--rounds 2 --log s.jsonl");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("line 3 was cut off in the middle and is dropped"), std::string::npos) << r.err;
  EXPECT_EQ(lines("s.jsonl").size(), 3u);
  // Cut off in the first line: nothing was logged yet.
  write_file(scratch() + "/s.jsonl", whole.substr(0, 50));
  EXPECT_EQ(run_tool(small + "--rounds 1 --log s.jsonl").code, 0);
  EXPECT_EQ(lines("s.jsonl").size(), 2u);
}

TEST(Soak, RefusesAnotherLog) {
  ASSERT_EQ(run_tool(small + "--rounds 1 --log s.jsonl").code, 0);
  const std::string whole = read_file(scratch() + "/s.jsonl");
  const auto refused = [&](const std::string& arguments, const std::string& named) {
    const Ran r = run_tool(arguments);
    EXPECT_EQ(r.code, 2) << arguments << r.out;
    EXPECT_NE(r.err.find(named), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  };
  refused(small + "--rounds 2 --seed 9 --log s.jsonl", "was begun with seed 1, this run has 9");
  refused(small + "--rounds 2 --laws unwritten --log s.jsonl", "was begun with laws");
  refused("gate --soak --rounds 2 --cases 5 --corpus none --log s.jsonl", "was begun with cases 4, this run has 5");
  EXPECT_EQ(read_file(scratch() + "/s.jsonl"), whole) << "a refused log is not touched";
  std::string other = whole;
  other.replace(other.find("\"build\":\"") + 9, 16, "0123456789abcdef");
  write_file(scratch() + "/other.jsonl", other);
  refused(small + "--rounds 2 --log other.jsonl", "a soak is about one build");
  write_file(scratch() + "/notes.txt", "milk\neggs\n");
  refused(small + "--rounds 1 --log notes.txt", "line 1 is not that of a soak's log");
  write_file(scratch() + "/notes.txt", "milk");
  refused(small + "--rounds 1 --log notes.txt", "line 1 is not that of a soak's log");
  EXPECT_EQ(read_file(scratch() + "/notes.txt"), "milk");
  const std::size_t second = whole.find('\n') + 1;
  write_file(scratch() + "/damaged.jsonl", whole.substr(0, second) + "{}\n" + whole.substr(second));
  refused(small + "--rounds 2 --log damaged.jsonl", "line 2 is damaged");
  refused(small + "--rounds 1 --log absent/s.jsonl", "cannot be written");
  refused(small + "--rounds 1 --json x.json", "--json");
  refused("gate --rounds 1", "--soak");
}

TEST(Soak, AFailureIsLoggedAndCanBeRepeated) {
  const Ran r = run_tool("gate --soak --plugin " + plugin("wrong") +
                         " --kernels test.first --laws encloses --cases 3 --corpus none --rounds 2 --log s.jsonl");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  const auto log = lines("s.jsonl");
  ASSERT_EQ(log.size(), 3u);
  ASSERT_EQ(log[1]["failures"].size(), 1u);
  const auto& failure = log[1]["failures"][0];
  EXPECT_EQ(failure["kernel"], "test.first");
  EXPECT_EQ(failure["law"], "encloses");
  EXPECT_NE(read_file(scratch() + "/" + failure["case"].get<std::string>()), "");
  EXPECT_EQ(run_shell(failure["command"].get<std::string>()).code, 1);
  const std::size_t at = r.out.find("round 0 again: ");
  ASSERT_NE(at, std::string::npos) << r.out;
  EXPECT_EQ(run_shell(r.out.substr(at + 15, r.out.find('\n', at) - at - 15)).code, 1);
}

TEST(Soak, EndsByTheClockAndBySignals) {
  // A round takes a tenth of a second, under a sanitizer on a busy machine fifty times that.
  EXPECT_EQ(run_tool(small + "--seconds 5 --log s.jsonl").code, 0);
  for (const std::string signal : {"INT", "TERM"}) {
    const Ran r = run_shell("'" ATTEST_TOOL "' " + small + "--log " + signal +
                            ".jsonl & pid=$!; for i in $(seq 600); do [ \"$(cat " + signal +
                            ".jsonl 2>/dev/null | wc -l)\" -gt 1 ] && break; sleep 0.1; done; kill -" + signal +
                            " $pid; wait $pid");
    EXPECT_EQ(r.code, 0) << signal << r.out << r.err;
    EXPECT_NE(r.out.find("PASS  soak"), std::string::npos) << r.out;
    EXPECT_GT(lines(signal + ".jsonl").size(), 1u);
  }
}

TEST(Soak, VariantsAreThereForThePlainGateToo) {
  const std::string one = " --kernels variant.fp64.fa1";
  EXPECT_EQ(run_tool("gate" + one).code, 2);
  EXPECT_EQ(run_tool("gate --variants --laws encloses --cases 2 --corpus none" + one).code, 0);
  EXPECT_NE(run_tool("kernels --variants").out.find("variant.bf16.p16.fa4"), std::string::npos);
}

}  // namespace
}  // namespace attest::testing
