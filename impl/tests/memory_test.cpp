// Memory of a forward is O(N): at Tq = Tk = 8192 the score matrix alone would take 256 MiB in fp32.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "impl/tests/support.h"

namespace attn::test {
namespace {

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The high-water mark of the process only rises, so that earlier families can hide nothing of a later one: each may
// add at most the limit to what stood before it, and the first one starts from the inputs alone.
void expect_linear_memory(const char* name, Index block) {
  Options s;
  s.tq = s.tk = 8192;
  s.d_qk = s.d_v = 64;
  s.scale = 0.125;
  s.block_q = s.block_k = block;
  s.causal = std::strstr(name, "causal") ? ATTN_CAUSAL_TOP_LEFT : ATTN_CAUSAL_NONE;
  Forward f(s, kernel_named(name));
  const double before = peak_mib();
  ASSERT_EQ(f.run(), "");
  const double grown = peak_mib() - before;
  std::printf("%s, block %lld: peak RSS %.1f MiB, %.1f MiB above the inputs and outputs; a score matrix is 256 MiB\n",
              name, static_cast<long long>(block), before + grown, grown);
  EXPECT_LT(grown, 64);
  for (const Index i : {0, 4096, 8191}) EXPECT_TRUE(std::isfinite(f.lse.get({0, 0, i})));
}

TEST(Memory, StandardIsLinear) { expect_linear_memory("cpu.standard.fp32", 0); }
TEST(Memory, Fa1IsLinear) { expect_linear_memory("cpu.fa1.fp32", 0); }
TEST(Memory, Fa2IsLinear) { expect_linear_memory("cpu.fa2.fp32", 0); }
TEST(Memory, CausalIsLinear) { expect_linear_memory("cpu.causal.fp32", 0); }
TEST(Memory, DecodeIsLinear) { expect_linear_memory("cpu.decode.fp32", 0); }
TEST(Memory, Fa2IsLinearWithOneBlockForAll) { expect_linear_memory("cpu.fa2.fp32", 1 << 20); }

}  // namespace
}  // namespace attn::test
