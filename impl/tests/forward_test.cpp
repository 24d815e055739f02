// Every forward kernel against the definition in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "impl/registry.h"
#include "impl/tests/support.h"

namespace attn::test {
namespace {

bool is_causal_kernel(const attn_kernel& kernel) { return std::strstr(kernel.name, "causal") != nullptr; }

Options random_options(Noise& noise, bool causal_kernel) {
  const Index lengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 65};
  const Index blocks[] = {0, 1, 2, 3, 5, 8, 16, 17, 64, 1000000};
  const Index widths[] = {1, 2, 3, 4, 7, 8, 9, 16, 31, 33};
  Options s;
  s.seed = noise.bits();
  s.batch = noise.below(3) + 1;
  s.kv_heads = noise.below(3) + 1;
  s.q_heads = s.kv_heads * (noise.below(3) + 1);
  s.tq = lengths[noise.below(13)];
  s.tk = lengths[noise.below(13)];
  s.d_qk = widths[noise.below(10)];
  s.d_v = widths[noise.below(10)];
  s.block_q = blocks[noise.below(10)];
  s.block_k = blocks[noise.below(10)];
  s.splits = noise.below(8);
  s.threads = static_cast<std::int32_t>(noise.below(4));
  s.causal = static_cast<std::int32_t>(causal_kernel ? 1 + noise.below(2) : noise.below(3));
  s.boolean = noise.below(3) == 0;
  s.additive = noise.below(3) == 0;
  s.layout = static_cast<int>(noise.below(3));
  s.wide_output = noise.below(2) == 0;
  const double magnitudes[] = {0.01, 1, 1, 30};
  s.magnitude = magnitudes[noise.below(4)];
  if (noise.below(2) == 0)
    for (Index b = 0; b < s.batch; ++b) s.kv_len.push_back(noise.below(s.tk + 1));
  return s;
}

TEST(Forward, MatchesTheDefinitionOnRandomProblems) {
  Noise noise(20240501);
  for (int round = 0; round < 40; ++round)
    for (const attn_kernel* kernel : forward_kernels()) {
      Forward f(random_options(noise, is_causal_kernel(*kernel)), *kernel);
      ASSERT_EQ(f.run(), "") << kernel->name << " " << f.options.text();
      ASSERT_EQ(f.compare(), "");
    }
}

// Tq, Tk, blocks below and above the sequence, exhaustively at small sizes.
TEST(Forward, MatchesTheDefinitionForEveryBlockSize) {
  for (const char* name : {"cpu.standard.fp64", "cpu.fa1.fp64", "cpu.fa2.fp64", "cpu.causal.fp64", "cpu.decode.fp64"})
    for (const Index length : {1, 5, 13})
      for (Index block = 1; block <= 16; ++block)
        for (const std::int32_t causal : {0, 1, 2}) {
          const attn_kernel& kernel = kernel_named(name);
          if (is_causal_kernel(kernel) && causal == 0) continue;
          Options s;
          s.tq = length;
          s.tk = 11;
          s.block_q = 17 - block;
          s.block_k = block;
          s.splits = block % 5;
          s.causal = causal;
          Forward f(s, kernel);
          ASSERT_EQ(f.run(), "") << s.text();
          ASSERT_EQ(f.compare(), "");
        }
}

// Scores beyond +-1000 that rise, fall and alternate between blocks.
TEST(Forward, SurvivesSwingsBetweenBlocks) {
  for (const attn_kernel* kernel : forward_kernels())
    for (int pattern = 0; pattern < 3; ++pattern) {
      Options s;
      s.tq = 5;
      s.tk = 24;
      s.d_qk = 1;
      s.block_k = 4;
      s.scale = 1;
      s.causal = is_causal_kernel(*kernel) ? ATTN_CAUSAL_BOTTOM_RIGHT : 0;
      Forward f(s, *kernel);
      for (Index i = 0; i < s.tq; ++i) f.q.set({0, 0, i, 0}, 1);
      for (Index j = 0; j < s.tk; ++j) {
        const Index block = j / 4;
        const double level = pattern == 0   ? static_cast<double>(block)
                             : pattern == 1 ? -static_cast<double>(block)
                             : block % 2    ? 1
                                            : -1;
        f.k.set({0, 0, j, 0}, 1024 * level);
      }
      ASSERT_EQ(f.run(), "");
      ASSERT_EQ(f.compare(), "") << "pattern " << pattern;
    }
}

TEST(Forward, RowWithoutKeysIsZeroAndMinusInfinity) {
  for (const attn_kernel* kernel : forward_kernels()) {
    Options s;
    s.tq = 6;
    s.tk = 4;
    s.block_q = s.block_k = 2;
    s.splits = 3;
    s.causal = ATTN_CAUSAL_BOTTOM_RIGHT;  // rows 0 and 1 see nothing
    Forward f(s, *kernel);
    ASSERT_EQ(f.run(), "");
    for (Index i = 0; i < 2; ++i) {
      EXPECT_EQ(f.lse.get({0, 0, i}), -std::numeric_limits<double>::infinity()) << kernel->name;
      for (Index e = 0; e < s.d_v; ++e) EXPECT_EQ(f.o.get({0, 0, i, e}), 0) << kernel->name;
    }
    ASSERT_EQ(f.compare(), "");
  }
}

TEST(Forward, LogSumExpMayBeDeclined) {
  for (const attn_kernel* kernel : forward_kernels()) {
    Options s;
    s.causal = ATTN_CAUSAL_TOP_LEFT;
    Forward with(s, *kernel), without(s, *kernel);
    without.problem.lse = attn_tensor{};
    ASSERT_EQ(with.run(), "");
    ASSERT_EQ(without.run(), "");
    EXPECT_EQ(with.o.bytes(), without.o.bytes());
  }
}

// The documents' worked examples, as printed.
TEST(Forward, WorkedExamples) {
  const double q[2][2] = {{1, 0}, {0, 1}}, k[3][2] = {{1, 0}, {0, 1}, {1, 1}}, v[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  for (const Index block : {1, 2, 3}) {
    Options s;
    s.tq = 2;
    s.tk = 3;
    s.d_qk = s.d_v = 2;
    s.scale = 1 / std::sqrt(2.0);
    s.block_k = block;
    Forward f(s, kernel_named("cpu.fa2.fp64"));
    for (Index j = 0; j < 3; ++j)
      for (Index e = 0; e < 2; ++e) {
        f.k.set({0, 0, j, e}, k[j][e]);
        f.v.set({0, 0, j, e}, v[j][e]);
        if (j < 2) f.q.set({0, 0, j, e}, q[j][e]);
      }
    ASSERT_EQ(f.run(), "");
    EXPECT_NEAR(f.o.get({0, 0, 1, 0}), 3.40667256, 5e-9);
    EXPECT_NEAR(f.o.get({0, 0, 1, 1}), 4.40667256, 5e-9);
    EXPECT_NEAR(f.o.get({0, 0, 0, 0}), 3, 1e-12);
    EXPECT_NEAR(f.lse.get({0, 0, 0}), 1.62062114, 5e-9);
  }
}

}  // namespace
}  // namespace attn::test
