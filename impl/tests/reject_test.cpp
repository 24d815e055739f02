// What kernels refuse, and that the reason says what is wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "impl/registry.h"
#include "impl/tests/support.h"

namespace attn::test {
namespace {

Options small() {
  Options s;
  s.batch = 2;
  s.q_heads = 4;
  s.kv_heads = 2;
  s.causal = ATTN_CAUSAL_TOP_LEFT;
  s.kv_len = {5, 3};
  s.additive = s.boolean = true;
  return s;
}

struct Refused {
  const char* part_of_reason;
  std::function<void(Forward&)> spoil;
};

const Refused refused[] = {
    {"struct_size", [](Forward& f) { f.problem.struct_size = sizeof(attn_problem) - 1; }},
    {"op is", [](Forward& f) { f.problem.op = ATTN_OP_STEP; }},
    {"reserved", [](Forward& f) { f.problem.reserved[3] = 1; }},
    {"multiple of the number of kv heads", [](Forward& f) { f.problem.q.shape[1] = f.problem.o.shape[1] = 3; }},
    {"scale", [](Forward& f) { f.problem.scale = 0; }},
    {"scale", [](Forward& f) { f.problem.scale = -1; }},
    {"scale", [](Forward& f) { f.problem.scale = std::numeric_limits<double>::quiet_NaN(); }},
    {"scale", [](Forward& f) { f.problem.scale = INFINITY; }},
    {"softcap", [](Forward& f) { f.problem.softcap = 30; }},
    {"softcap", [](Forward& f) { f.problem.softcap = std::numeric_limits<double>::quiet_NaN(); }},
    {"bias", [](Forward& f) { f.problem.bias = f.problem.mask.additive; }},
    {"sinks", [](Forward& f) { f.problem.sinks = f.problem.lse; }},
    {"window", [](Forward& f) { f.problem.mask.window_left = 128; }},
    {"window", [](Forward& f) { f.problem.mask.window_right = 0; }},
    {"q is", [](Forward& f) { f.problem.q.dtype = ATTN_E4M3; }},
    {"rank", [](Forward& f) { f.problem.k.rank = 3; }},
    {"rank", [](Forward& f) { f.problem.lse.rank = 4; }},
    {"extent", [](Forward& f) { f.problem.v.shape[2] += 1; }},
    {"extent", [](Forward& f) { f.problem.o.shape[3] += 1; }},
    {"extent", [](Forward& f) { f.problem.q.shape[2] = f.problem.o.shape[2] = f.problem.lse.shape[2] = -1; }},
    {"negative stride", [](Forward& f) { f.problem.k.stride[2] = -4; }},
    {"stride 0", [](Forward& f) { f.problem.o.stride[2] = 0; }},
    {"NULL", [](Forward& f) { f.problem.v.data = nullptr; }},
    {"NULL", [](Forward& f) { f.problem.o.data = nullptr; }},
    {"overlaps", [](Forward& f) { f.problem.o.data = f.problem.q.data; }},
    {"lse is", [](Forward& f) { f.problem.lse.dtype = ATTN_BF16; }},
    {"causal", [](Forward& f) { f.problem.mask.causal = 3; }},
    {"kv_len[1]", [](Forward& f) { f.options.kv_len[1] = 6; }},
    {"kv_len[0]", [](Forward& f) { f.options.kv_len[0] = -1; }},
    {"mask.visible", [](Forward& f) { f.problem.mask.visible.dtype = ATTN_FP32; }},
    {"mask.additive", [](Forward& f) { f.problem.mask.additive.shape[3] = 1; }},
    {"bias",
     [](Forward& f) {
       f.additive.set({1, 2, 3, 4}, 0.5);
     }},
    {"bias",
     [](Forward& f) {
       f.additive.set({0, 0, 0, 0}, std::numeric_limits<double>::quiet_NaN());
     }},
    {"tiling", [](Forward& f) { f.problem.tiling.block_k = -1; }},
    {"tiling", [](Forward& f) { f.problem.tiling.threads = -1; }},
};

TEST(Reject, SaysWhatIsWrong) {
  for (const attn_kernel* kernel : forward_kernels()) {
    Forward fine(small(), *kernel);
    ASSERT_EQ(fine.run(), "") << kernel->name;
    for (const Refused& r : refused) {
      Forward f(small(), *kernel);
      r.spoil(f);
      char why[256] = "";
      ASSERT_EQ(kernel->supports(&f.problem, why, sizeof why), ATTN_REJECTED)
          << kernel->name << ": " << r.part_of_reason;
      EXPECT_NE(std::string(why).find(r.part_of_reason), std::string::npos) << why;
    }
  }
}

TEST(Reject, ScaleThatFp32CannotHold) {
  for (const double scale : {1e300, 1e-300, 1e-40}) {
    Options s;
    s.scale = scale;
    Forward narrow(s, kernel_named("cpu.fa2.fp32")), wide(s, kernel_named("cpu.fa2.fp64"));
    EXPECT_NE(narrow.run().find("rejected: scale"), std::string::npos) << scale;
    EXPECT_EQ(wide.run(), "") << scale;
  }
}

TEST(Reject, CausalKernelWithoutCausalMask) {
  Forward f(Options{}, kernel_named("cpu.causal.fp32"));
  EXPECT_NE(f.run().find("needs a causal mask"), std::string::npos);
}

TEST(Reject, ReasonIsCutToItsBuffer) {
  Forward f(Options{}, kernel_named("cpu.causal.fp32"));
  char why[8] = "1234567";
  EXPECT_EQ(f.kernel.supports(&f.problem, why, 5), ATTN_REJECTED);
  EXPECT_EQ(std::string(why), "this");
  EXPECT_EQ(f.kernel.supports(&f.problem, nullptr, 0), ATTN_REJECTED);
}

TEST(Reject, RunChecksItsWorkspace) {
  Forward f(Options{}, kernel_named("cpu.fa2.fp32"));
  char why[256] = "";
  EXPECT_EQ(f.kernel.run(&f.problem, nullptr, 0, why, sizeof why), ATTN_ERROR);
  EXPECT_NE(std::string(why).find("workspace"), std::string::npos);
}

// Nothing to compute is not an error.
TEST(Reject, ZeroSizesAreAccepted) {
  for (const attn_kernel* kernel : forward_kernels())
    for (int which = 0; which < 7; ++which) {
      Options s;
      s.causal = ATTN_CAUSAL_TOP_LEFT;
      if (which == 0) s.batch = 0;
      if (which == 1) s.tq = 0;
      if (which == 2) s.tk = 0;
      if (which == 3) s.d_v = 0;
      if (which == 4) s.d_qk = 0;
      if (which == 5) s.q_heads = 0;
      if (which == 6) s.q_heads = s.kv_heads = 0;
      s.threads = 2;
      Forward f(s, *kernel);
      EXPECT_EQ(f.run(), "") << kernel->name << " " << which;
      EXPECT_EQ(f.compare(), "");
    }
}

TEST(Registry, NamesAndContractsAreConsistent) {
  std::set<std::string> names;
  for (const attn_kernel& kernel : cpu_kernels()) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
    EXPECT_EQ(kernel.struct_size, sizeof(attn_kernel));
    ASSERT_NE(find_preset(kernel.contract.preset), nullptr) << kernel.name;
    EXPECT_EQ(find_preset(kernel.contract.preset)->algorithm, kernel.contract.algorithm);
    EXPECT_GT(std::string(kernel.contract.sources).size(), 50u);
  }
  EXPECT_EQ(names.size(), 44u);
  EXPECT_EQ(find_preset("fp32.nonsense"), nullptr);
  EXPECT_EQ(find_preset(nullptr), nullptr);
}

// workspace_size() within the formula of the Contract, with no term in Tq Tk.
TEST(Registry, WorkspaceKeepsToTheContract) {
  Noise noise(5);
  for (int round = 0; round < 300; ++round)
    for (const attn_kernel* kernel : forward_kernels()) {
      Options s;
      s.tq = noise.below(70);
      s.tk = noise.below(300);
      s.d_qk = noise.below(20);
      s.d_v = noise.below(20);
      s.batch = noise.below(3);
      s.block_q = noise.below(90);
      s.block_k = noise.below(90);
      s.splits = noise.below(20);
      s.threads = static_cast<std::int32_t>(noise.below(5));
      s.causal = ATTN_CAUSAL_TOP_LEFT;
      s.wide_output = noise.below(2) == 0;
      Forward f(s, *kernel);
      const attn_contract& c = kernel->contract;
      const auto open = [](Index asked, Index own) { return static_cast<double>(asked > 0 ? asked : own); };
      const double rows = static_cast<double>(s.batch * s.q_heads * s.tq);
      const double br = std::min(open(s.block_q, c.default_block_q), static_cast<double>(s.tq));
      const double bc = std::min(open(s.block_k, c.default_block_k), static_cast<double>(s.tk));
      const double allowed =
          c.workspace_fixed + c.workspace_per_row * rows + c.workspace_per_value * rows * static_cast<double>(s.d_v) +
          c.workspace_per_split * open(s.splits, c.max_splits) * rows * static_cast<double>(s.d_v + 2) +
          c.workspace_per_thread * std::max<double>(s.threads, 1) * (br + bc + 1) *
              static_cast<double>(s.d_qk + s.d_v + 16);
      EXPECT_LE(static_cast<double>(kernel->workspace_size(&f.problem)), allowed) << kernel->name << " " << s.text();
    }
}

}  // namespace
}  // namespace attn::test
