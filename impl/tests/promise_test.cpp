// The bitwise promises of the Contracts, each held by every kernel that makes it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "impl/registry.h"
#include "impl/tests/support.h"

namespace attn::test {
namespace {

// A problem with every kind of mask, groups, ragged blocks and an odd size.
Options busy(const attn_kernel& kernel, std::uint64_t seed) {
  Options s;
  s.batch = 2;
  s.kv_heads = 2;
  s.q_heads = 4;
  s.tq = 21;
  s.tk = 37;
  s.d_qk = 9;
  s.d_v = 11;
  s.block_q = 5;
  s.block_k = 7;
  s.splits = 3;
  s.kv_len = {37, 20};
  s.boolean = seed % 2 == 0;
  s.additive = seed % 3 == 0;
  s.causal = static_cast<std::int32_t>(seed % 3);
  if (std::strstr(kernel.name, "causal") && s.causal == 0) s.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
  s.seed = seed;
  return s;
}

std::vector<std::uint64_t> bits_of(Forward& f) {
  EXPECT_EQ(f.run(), "") << f.kernel.name << " " << f.options.text();
  return f.output_bits();
}

void for_each_promising(std::uint64_t promise, const std::function<void(const attn_kernel&, std::uint64_t)>& body) {
  int bound = 0;
  for (const attn_kernel* kernel : forward_kernels()) {
    if (!(kernel->contract.promises & promise)) continue;
    ++bound;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) body(*kernel, seed);
  }
  EXPECT_GT(bound, 0);
}

TEST(Promise, SameBitsForAnyThreadCount) {
  for_each_promising(ATTN_PROMISE_DETERMINISTIC, [](const attn_kernel& kernel, std::uint64_t seed) {
    Options s = busy(kernel, seed);
    Forward one(s, kernel);
    const auto want = bits_of(one);
    for (const std::int32_t threads : {1, 2, 3, 8}) {
      s.threads = threads;
      Forward many(s, kernel);
      EXPECT_EQ(bits_of(many), want) << kernel.name << " threads " << threads;
    }
  });
}

// Runs twice: as it is, and with every key that row `i` of head h does not see overwritten by `value`.
void expect_isolated(const attn_kernel& kernel, std::uint64_t seed, double value) {
  const Options s = busy(kernel, seed);
  Forward plain(s, kernel);
  bits_of(plain);
  const Index b = 1, h = 1, kv = 0;
  for (const Index i : {Index{0}, Index{1}, Index{7}, s.tq - 1}) {
    Forward dirty(s, kernel);
    for (Index j = 0; j < s.tk; ++j) {
      if (dirty.visible(b, h, i, j)) continue;
      for (Index e = 0; e < s.d_qk; ++e) dirty.k.set({b, kv, j, e}, value);
      for (Index e = 0; e < s.d_v; ++e) dirty.v.set({b, kv, j, e}, value);
    }
    bits_of(dirty);
    EXPECT_EQ(dirty.lse.bits({b, h, i}), plain.lse.bits({b, h, i})) << kernel.name << " row " << i << " seed " << seed;
    for (Index e = 0; e < s.d_v; ++e)
      EXPECT_EQ(dirty.o.bits({b, h, i, e}), plain.o.bits({b, h, i, e}))
          << kernel.name << " row " << i << " seed " << seed;
  }
}

TEST(Promise, RowsDoNotSeeInvisibleKeys) {
  for_each_promising(ATTN_PROMISE_ROW_ISOLATED, [](const attn_kernel& kernel, std::uint64_t seed) {
    expect_isolated(kernel, seed, 100);
    expect_isolated(kernel, seed, -6e4);
  });
}

TEST(Promise, NonFiniteInvisibleKeysStayOut) {
  for (const attn_kernel* kernel : forward_kernels()) {
    ASSERT_EQ(kernel->contract.isolates_nonfinite, ATTN_ISOLATES_ROW);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      expect_isolated(*kernel, seed, std::numeric_limits<double>::quiet_NaN());
      expect_isolated(*kernel, seed, std::numeric_limits<double>::infinity());
      expect_isolated(*kernel, seed, -std::numeric_limits<double>::infinity());
    }
  }
}

TEST(Promise, BatchEntriesDoNotMeet) {
  for_each_promising(ATTN_PROMISE_BATCH_INVARIANT, [](const attn_kernel& kernel, std::uint64_t seed) {
    Options s = busy(kernel, seed);
    s.kv_len = {20, 37};
    if (seed % 2) s.splits = 0;  // the kernel's own choice must not look at the batch
    Forward both(s, kernel), single(s, kernel);
    bits_of(both);
    // Entry 1 alone, in place.
    attn_problem& p = single.problem;
    for (attn_tensor* t : {&p.q, &p.k, &p.v, &p.o, &p.lse, &p.mask.visible, &p.mask.additive}) {
      if (!t->data) continue;
      const Index size = t->dtype == ATTN_FP64 ? 8 : t->dtype == ATTN_FP32 ? 4 : t->dtype == ATTN_U8 ? 1 : 2;
      t->data = static_cast<char*>(t->data) + t->stride[0] * size;
      t->shape[0] = 1;
    }
    p.mask.kv_len = single.options.kv_len.data() + 1;
    EXPECT_EQ(single.run(), "");
    for (Index h = 0; h < s.q_heads; ++h)
      for (Index i = 0; i < s.tq; ++i) {
        EXPECT_EQ(single.lse.bits({1, h, i}), both.lse.bits({1, h, i})) << kernel.name;
        for (Index e = 0; e < s.d_v; ++e)
          EXPECT_EQ(single.o.bits({1, h, i, e}), both.o.bits({1, h, i, e})) << kernel.name;
      }
  });
}

TEST(Promise, StridesChangeNoBit) {
  for_each_promising(ATTN_PROMISE_LAYOUT_INVARIANT, [](const attn_kernel& kernel, std::uint64_t seed) {
    Options s = busy(kernel, seed);
    Forward dense(s, kernel);
    const auto want = bits_of(dense);
    for (const int layout : {1, 2}) {
      s.layout = layout;
      Forward strided(s, kernel);
      EXPECT_EQ(bits_of(strided), want) << kernel.name << " layout " << layout;
    }
  });
}

TEST(Promise, GroupedHeadsEqualRepeatedHeads) {
  for_each_promising(ATTN_PROMISE_HEAD_PACKING_INVARIANT, [](const attn_kernel& kernel, std::uint64_t seed) {
    Options s = busy(kernel, seed);
    Forward grouped(s, kernel);
    Options wide = s;
    wide.kv_heads = s.q_heads;
    Forward repeated(wide, kernel);
    for (Index b = 0; b < s.batch; ++b)
      for (Index h = 0; h < s.q_heads; ++h) {
        for (Index i = 0; i < s.tq; ++i)
          for (Index e = 0; e < s.d_qk; ++e) repeated.q.set({b, h, i, e}, grouped.q.get({b, h, i, e}));
        for (Index j = 0; j < s.tk; ++j) {
          for (Index e = 0; e < s.d_qk; ++e) repeated.k.set({b, h, j, e}, grouped.k.get({b, h / 2, j, e}));
          for (Index e = 0; e < s.d_v; ++e) repeated.v.set({b, h, j, e}, grouped.v.get({b, h / 2, j, e}));
        }
        for (Index i = 0; i < s.tq; ++i)
          for (Index j = 0; j < s.tk; ++j) {
            if (s.boolean) repeated.boolean.set({b, h, i, j}, grouped.boolean.get({b, h, i, j}));
            if (s.additive) repeated.additive.set({b, h, i, j}, grouped.additive.get({b, h, i, j}));
          }
      }
    EXPECT_EQ(bits_of(repeated), bits_of(grouped)) << kernel.name;
  });
}

TEST(Promise, TilingChangesNoBit) {
  for_each_promising(ATTN_PROMISE_TILING_INVARIANT, [](const attn_kernel& kernel, std::uint64_t seed) {
    Options s = busy(kernel, seed);
    Forward first(s, kernel);
    const auto want = bits_of(first);
    for (const Index block : {1, 2, 8, 36, 1000}) {
      s.block_k = block;
      s.block_q = 1001 - block;
      s.splits = block;
      Forward other(s, kernel);
      EXPECT_EQ(bits_of(other), want) << kernel.name << " block_k " << block;
    }
  });
}

// All kernels: query blocks are independent of each other.
TEST(Promise, QueryBlocksChangeNoBit) {
  for (const attn_kernel* kernel : forward_kernels()) {
    Options s = busy(*kernel, 4);
    Forward first(s, *kernel);
    const auto want = bits_of(first);
    for (const Index block : {1, 8, 13, 1000}) {
      s.block_q = block;
      Forward other(s, *kernel);
      EXPECT_EQ(bits_of(other), want) << kernel->name << " block_q " << block;
    }
  }
}

TEST(Promise, BroadcastInputsEqualRepeatedOnes) {
  for (const attn_kernel* kernel : forward_kernels()) {
    const Options s = busy(*kernel, 5);
    Forward repeated(s, *kernel), broadcast(s, *kernel);
    for (Forward* f : {&repeated, &broadcast})
      for (Index b = 0; b < s.batch; ++b)
        for (Index h = 0; h < s.kv_heads; ++h)
          for (Index j = 0; j < s.tk; ++j)
            for (Index e = 0; e < s.d_qk; ++e) f->k.set({b, h, j, e}, f->k.get({0, 0, j, 0}));
    broadcast.problem.k.stride[0] = broadcast.problem.k.stride[1] = broadcast.problem.k.stride[3] = 0;
    EXPECT_EQ(bits_of(broadcast), bits_of(repeated)) << kernel->name;
  }
}

TEST(Promise, InputsAreNotWritten) {
  for (const attn_kernel* kernel : forward_kernels())
    for (const bool wide : {false, true}) {
      Options s = busy(*kernel, 6);
      s.wide_output = wide;
      s.threads = 2;
      Forward f(s, *kernel);
      const auto q = f.q.bytes(), k = f.k.bytes(), v = f.v.bytes();
      bits_of(f);
      EXPECT_EQ(f.q.bytes(), q);
      EXPECT_EQ(f.k.bytes(), k);
      EXPECT_EQ(f.v.bytes(), v);
    }
}

// NaN at a visible input reaches exactly the rows and columns that depend on it.
TEST(NonFinite, ReachesWhatSeesIt) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const attn_kernel* kernel : forward_kernels()) {
    Options s;
    s.tq = 6;
    s.tk = 6;
    s.block_k = 2;
    s.block_q = 4;
    s.splits = 2;
    s.causal = ATTN_CAUSAL_TOP_LEFT;
    Forward key(s, *kernel), value(s, *kernel), plain(s, *kernel);
    key.k.set({0, 0, 3, 1}, nan);
    value.v.set({0, 0, 3, 1}, nan);
    bits_of(plain);
    bits_of(key);
    bits_of(value);
    for (Index i = 0; i < s.tq; ++i) {
      EXPECT_EQ(std::isnan(key.lse.get({0, 0, i})), i >= 3) << kernel->name;
      EXPECT_EQ(value.lse.bits({0, 0, i}), plain.lse.bits({0, 0, i})) << kernel->name;
      for (Index e = 0; e < s.d_v; ++e) {
        EXPECT_EQ(std::isnan(key.o.get({0, 0, i, e})), i >= 3) << kernel->name;
        EXPECT_EQ(std::isnan(value.o.get({0, 0, i, e})), i >= 3 && e == 1) << kernel->name;
      }
    }
  }
}

// A row that sees nothing but NaN is not a row without keys.
TEST(NonFinite, OnlyNaNIsNotEmpty) {
  for (const attn_kernel* kernel : forward_kernels()) {
    Options s;
    s.tq = 2;
    s.tk = 3;
    s.causal = ATTN_CAUSAL_TOP_LEFT;
    Forward f(s, *kernel);
    for (Index j = 0; j < s.tk; ++j) f.k.set({0, 0, j, 0}, std::numeric_limits<double>::quiet_NaN());
    bits_of(f);
    EXPECT_TRUE(std::isnan(f.o.get({0, 0, 1, 0}))) << kernel->name;
    EXPECT_TRUE(std::isnan(f.lse.get({0, 0, 1}))) << kernel->name;
  }
}

// A score of -inf has weight 0 wherever it comes from; 0 times a value that is not finite is still NaN.
TEST(NonFinite, MinusInfinityScoresWeighNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const attn_kernel* kernel : forward_kernels())
    for (const bool all : {false, true}) {
      Options s;
      s.tq = s.tk = 4;
      s.block_k = s.splits = 2;
      s.d_qk = 1;
      s.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
      Forward f(s, *kernel);
      for (Index j = 0; j < s.tk; ++j) {
        f.q.set({0, 0, j, 0}, 1);
        if (all || j < 2) f.k.set({0, 0, j, 0}, -inf);
      }
      f.v.set({0, 0, 0, 1}, inf);
      bits_of(f);
      EXPECT_TRUE(std::isnan(f.o.get({0, 0, 3, 1}))) << kernel->name;
      EXPECT_EQ(std::isinf(f.lse.get({0, 0, 3})), all) << kernel->name;
      EXPECT_TRUE(all ? f.o.get({0, 0, 3, 0}) == 0 : std::isfinite(f.o.get({0, 0, 3, 0}))) << kernel->name;
    }
}

}  // namespace
}  // namespace attn::test
