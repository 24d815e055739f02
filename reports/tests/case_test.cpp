// A bad .case is refused with file, field and reason; a good one is explained.
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/tests/run_tool.h"

namespace attest::testing {
namespace {

// Two queries, three keys: small enough to be read in full.
const std::string good = R"({
  "schema": "attest-case/1", "op": "forward", "dtype": "fp32",
  "shape": {"tq": 2, "tk": 3, "d_qk": 2, "d_v": 2},
  "values": {"family": "gaussian", "seed": 3}
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Ran check(const std::string& text, const std::string& more = "") {
  write_file(scratch() + "/x.case", text);
  return run_tool("check x.case " + more);
}

TEST(CheckCase, ExplainsEveryElement) {
  const Ran r = check(good, "--kernels '*.fa2.fp32' --laws encloses --all");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  for (const char* expected : {"o[b=0,h=0,i=1,e=1]", "lse[b=0,h=0,i=0]", "truth", "radius", "bound", "error/bound"})
    EXPECT_NE(r.out.find(expected), std::string::npos) << expected << "\n" << r.out;
}

TEST(CheckCase, SaysWhatItDidNotCompareAndHowManyRowsItJudged) {
  const std::string printed = R"({
  "schema": "attest-case/1", "op": "forward", "shape": {"tq": 1, "tk": 1, "d_qk": 1, "d_v": 1},
  "values": {"tensors": {"q": [0], "k": [0], "v": [0.1]}}, "expected": {"tensors": {"o": [0.1]}, "tolerance": 1e-6}
})";
  const std::string not_compared = "expected: not compared for ";
  EXPECT_NE(check(printed, "--kernels cpu.fa2.bf16.p16 --laws encloses").out.find(not_compared + "bf16"),
            std::string::npos);
  const Ran exact = check(replaced(printed, "0.1]}}", "0.5]}}"), "--kernels cpu.fa2.bf16.p16 --laws encloses");
  EXPECT_EQ(exact.out.find(not_compared), std::string::npos) << exact.out;
  EXPECT_EQ(exact.code, 1) << "0.5 is exact in bf16, and 0.1 is not what was printed\n" << exact.out << exact.err;
  const Ran rows = check(replaced(good, "\"tq\": 2", "\"tq\": 1500"), "--kernels cpu.fa2.fp32 --laws encloses");
  EXPECT_NE(rows.out.find("rows judged: 1500 of 1500"), std::string::npos) << rows.out;
}

TEST(CheckCase, NothingThatConcernsTheCaseIsNotAPass) { EXPECT_EQ(check(good, "--kernels '*.fp64'").code, 3); }

// A search of a mutant leaves cases of it; a pattern for all kernels never means one.
TEST(CheckCase, MutantsHaveToBeMeant) {
  const Ran named = check(good, "--kernels mutant.head-dim-multiple-of-8");
  EXPECT_EQ(named.code, 1) << named.out << named.err;
  EXPECT_EQ(check(good, "--kernels '*' --laws encloses").out.find("mutant."), std::string::npos);
}

TEST(CheckCase, BadOnesAreRefusedWithFileFieldAndReason) {
  struct Bad {
    const char* what;
    std::string text;
    const char* field;
  };
  const Bad bad[] = {
      {"unknown field", replaced(good, "\"op\"", "\"colour\": \"red\", \"op\""), "colour"},
      {"unknown field inside", replaced(good, "\"tq\": 2", "\"tq\": 2, \"tz\": 1"), "tz"},
      {"negative size", replaced(good, "\"tq\": 2", "\"tq\": -2"), "tq"},
      {"beyond memory", replaced(good, "\"tk\": 3", "\"tk\": 1000000000000"), "shape"},
      {"wrong type", replaced(good, "\"tk\": 3", "\"tk\": \"three\""), "tk"},
      {"unknown word", replaced(good, "\"fp32\"", "\"fp33\""), "dtype"},
      {"absent npy", replaced(good, "\"seed\": 3", "\"seed\": 3, \"tensors\": {\"q\": {\"npy\": \"absent.npy\"}}"),
       "q"},
      {"bad npy", replaced(good, "\"seed\": 3", "\"seed\": 3, \"tensors\": {\"q\": {\"npy\": \"bad.npy\"}}"),
       "bad.npy"},
      {"truncated", good.substr(0, good.size() / 2), "x.case"},
      {"empty", "", "x.case"},
  };
  write_file(scratch() + "/bad.npy", std::string("\x93NUMPY\x01", 7) + '\0' + " this is no header");
  for (const Bad& b : bad) {
    const Ran r = check(b.text);
    EXPECT_EQ(r.code, 2) << b.what << "\n" << r.out << r.err;
    EXPECT_NE(r.err.find("x.case"), std::string::npos) << b.what << "\n" << r.err;
    EXPECT_NE(r.err.find(b.field), std::string::npos) << b.what << "\n" << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << "one line\n" << r.err;
  }
}

TEST(CheckCase, ABadFileInTheCorpusStopsTheGate) {
  ASSERT_EQ(run_shell("mkdir c").code, 0);
  write_file(scratch() + "/c/bad.case", "{");
  const Ran r = run_tool("gate --corpus c --cases 1 --laws encloses");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("bad.case"), std::string::npos) << r.err;
}

TEST(Listings, NameEveryKernelLawAndConstant) {
  const Ran kernels = run_tool("kernels"), laws = run_tool("laws");
  EXPECT_EQ(kernels.code, 0);
  EXPECT_NE(kernels.out.find("forward"), std::string::npos) << kernels.out;
  EXPECT_EQ(laws.code, 0);
  EXPECT_NE(laws.out.find("encloses"), std::string::npos) << laws.out;
  const Ran contract = run_tool("kernels --contract fp32.fa2");
  EXPECT_EQ(contract.code, 0) << contract.err;
  for (const char* word : {"exp_error", "sources: ", "promises", "acc_dtype"})
    EXPECT_NE(contract.out.find(word), std::string::npos) << contract.out;
}

}  // namespace
}  // namespace attest::testing
