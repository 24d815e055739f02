// Kernels from shared libraries: refused by name when they do not fit, judged like ours when they do.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "impl/registry.h"
#include "properties/plugin.h"
#include "reports/tests/run_tool.h"

namespace attest::testing {
namespace {

Ran gate(const std::string& kind, const std::string& more = "") {
  return run_tool("gate --plugin " + plugin(kind) + " --cases 2 --corpus none --laws encloses " + more);
}

TEST(Plugin, RefusalsNameFileWhatWasFoundAndWhatIsNeeded) {
  const std::pair<const char*, const char*> bad[] = {
      {"wrong_abi", "ABI version is 99, need 1"},
      {"no_symbol", "attn_plugin_v1"},
      {"small_struct", "struct_size is 8, need sizeof(attn_kernel)"},
      {"bad_contract", "contract.in_dtype is 77"},
      {"unknown_preset", "contract.preset is \"fp7.wishful\", need one of"},
  };
  for (const auto& [kind, reason] : bad) {
    const Ran r = gate(kind);
    EXPECT_EQ(r.code, 2) << kind << "\n" << r.out << r.err;
    EXPECT_NE(r.err.find("plugin_" + std::string(kind) + ".so"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(reason), std::string::npos) << r.err;
  }
  write_file(scratch() + "/text.so", "not a library");
  EXPECT_EQ(run_tool("gate --plugin ./text.so").code, 2);
}

TEST(Plugin, AnHonestKernelPassesAndItsTableIsWalkedByItsOwnStride) {
  const Ran r = gate("honest", "--json j.json");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("test.first"), std::string::npos);
  EXPECT_NE(r.out.find("test.second"), std::string::npos);
  EXPECT_EQ(r.out.find("cpu."), std::string::npos) << "our own kernels were not asked for\n" << r.out;
}

TEST(Plugin, RejectingEverythingIsNotGreen) {
  const Ran r = gate("rejects");
  EXPECT_EQ(r.code, 3) << r.out << r.err;
  EXPECT_NE(r.out.find("NO PASS test.first encloses: 2 checks: 2 rejected (not today)"), std::string::npos) << r.out;
}

TEST(Plugin, HavingNoDeviceIsNotGreen) {
  const Ran r = gate("no_device");
  EXPECT_EQ(r.code, 3) << r.out << r.err;
  EXPECT_NE(r.out.find("no such device"), std::string::npos) << r.out;
}

TEST(Plugin, AWrongKernelFailsWithALineThatReproduces) {
  const Ran r = gate("wrong");
  ASSERT_EQ(r.code, 1) << r.out << r.err;
  const auto line = r.out.find("FAIL encloses  test.first at o[");
  ASSERT_NE(line, std::string::npos) << r.out;
  const auto begin = r.out.find("reproduce: ", line) + 11, end = r.out.find('\n', line);
  const Ran again = run_shell(r.out.substr(begin, end - begin));
  EXPECT_EQ(again.code, 1) << again.out << again.err;
  EXPECT_NE(again.out.find("error/bound"), std::string::npos) << again.out;
}

TEST(Plugin, WithoutIsolationACrashLeavesItsCase) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer reports crashes itself";
#endif
  const Ran r = gate("crashes", "--no-isolate --jobs 1");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  const auto at = r.err.find("reproduce: ");
  ASSERT_NE(at, std::string::npos) << r.err;
  EXPECT_FALSE(std::filesystem::is_empty(scratch() + "/attest-failures"));
  const std::string command = r.err.substr(at + 11, r.err.find('\n', at) - at - 11);
  EXPECT_EQ(run_shell(command).code, 1) << command;
}

TEST(Plugin, ACustomContractIsSaidAndCanBeRefused) {
  const Ran r = gate("custom", "--json j.json");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("times looser than fp32.standard"), std::string::npos) << r.out;
  const auto j = nlohmann::json::parse(read_file(scratch() + "/j.json"));
  EXPECT_EQ(j["custom_contracts"].size(), 2u);
  const Ran refused = gate("custom", "--require-contract fp32.standard");
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_NE(refused.err.find("test.first"), std::string::npos) << refused.err;
  EXPECT_EQ(gate("honest", "--require-contract fp32.standard").code, 0);
  EXPECT_EQ(gate("honest", "--require-contract fp32.fa2").code, 2);
}

TEST(Plugin, ANameLongerThanAFileNameStillGetsItsCases) {
  const Ran r = gate("long_name");
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_EQ(r.out.find("case not saved"), std::string::npos) << r.out;
  // Two names that differ behind the cut get a file each.
  const std::filesystem::directory_iterator files(scratch() + "/attest-failures");
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST(Plugin, EndingTheProcessIsNotGreen) {
  for (const std::string kind : {"exits", "exits_clean", "exits_loading"}) {
    write_file(scratch() + "/j.json", "of an earlier run");
    const Ran r = gate(kind, "--no-isolate --json j.json");
    EXPECT_EQ(r.code, 1) << kind << "\n" << r.out << r.err;
    EXPECT_NE(r.err.find("a kernel ended the process (exit status 0)"), std::string::npos) << kind << "\n" << r.err;
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch() + "/j.json"))["verdict"], "crashed") << kind;
    if (kind == "exits_loading") continue;
    const auto at = r.err.find("reproduce: ");
    ASSERT_NE(at, std::string::npos) << r.err;
    const Ran again = run_shell(r.err.substr(at + 11, r.err.find('\n', at) - at - 11) + " --no-isolate");
    EXPECT_EQ(again.code, 1) << kind << "\n" << again.out << again.err;
    EXPECT_NE(again.err.find("a kernel ended the process"), std::string::npos) << kind << "\n" << again.err;
  }
}

TEST(Plugin, ACustomContractIsOnlyCalledNoLooserIfItPromisesNoLess) {
  const attn_contract preset = *attn::find_preset("fp32.fa2");
  const auto named = [&](auto change) {
    attn_contract c = preset;
    change(c);
    return contract_name(c);
  };
  EXPECT_EQ(contract_name(preset), "fp32.fa2");
  EXPECT_EQ(named([](attn_contract& c) { c.exp_error /= 2; }), "custom, no looser than fp32.fa2");
  const std::string weaker = "custom, weaker than fp32.fa2 in ";
  EXPECT_EQ(named([](attn_contract& c) { c.promises &= c.promises - 1; }), weaker + "promises");
  EXPECT_EQ(named([](attn_contract& c) { c.flushes_subnormals = 1; }), weaker + "flushes_subnormals");
  EXPECT_EQ(named([](attn_contract& c) { c.sum_order = ATTN_SUM_ANY; }), weaker + "sum_order");
  EXPECT_EQ(named([](attn_contract& c) { c.isolates_nonfinite = ATTN_ISOLATES_HEAD; }), weaker + "isolates_nonfinite");
  EXPECT_EQ(named([](attn_contract& c) { c.p_dtype = ATTN_BF16; }), weaker + "p_dtype");
  EXPECT_EQ(named([](attn_contract& c) { c.default_block_k = 0; }), weaker + "default_block_k");
  EXPECT_EQ(named([](attn_contract& c) { c.workspace_fixed += 1, c.workspace_per_row += 1; }),
            weaker + "workspace_fixed, workspace_per_row");
  const std::string both = named([](attn_contract& c) { c.flushes_subnormals = 1, c.exp_error = 100; });
  EXPECT_TRUE(both.ends_with(" times looser than fp32.fa2, weaker in flushes_subnormals")) << both;
}

// ---- the skeleton -------------------------------------------------------------------------------------------------

TEST(NewPlugin, BuildsWithOneCommandAndPassesTheGate) {
  ASSERT_EQ(run_tool("new-plugin mine").code, 0);
  EXPECT_EQ(run_tool("new-plugin mine").code, 2) << "an existing folder must be left alone";
  const Ran built = run_shell("cd mine && c++ -O2 -shared -fPIC kernel.c -o libmine.so");
  ASSERT_EQ(built.code, 0) << built.err;
  const Ran r = run_tool("gate --plugin mine/libmine.so --cases 4 --require-contract fp32.standard");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
}

TEST(NewPlugin, IsThePageThatReadmeShows) {
  const std::string root = ATTEST_SOURCE_DIR, page = read_file(root + "/reports/tool/skeleton/kernel.c");
  ASSERT_FALSE(page.empty());
  EXPECT_NE(read_file(root + "/README.md").find("```c\n" + page + "```"), std::string::npos)
      << "README.md's plugin and reports/tool/skeleton/kernel.c differ";
}

}  // namespace
}  // namespace attest::testing
