// The algebra of the online softmax and the kernels on states: scan, step and merge.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "impl/core/online_softmax.h"
#include "impl/tests/support.h"

namespace attn::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Algebra, EmptyRowsDoNotMakeNaN) {
  EXPECT_EQ(rescale_factor(-inf, -inf, 0.5), 0.0);
  EXPECT_EQ(rescale_factor(-inf, 2.0, 0.5), 0.0);
  EXPECT_EQ(rescale_factor(2.0, 2.0, 0.5), 1.0);
  EXPECT_EQ(weight_of(-inf, finite_max(-inf), 0.5), 0.0);
}

TEST(Algebra, MaximumKeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(max_or_nan(nan, 1.0)));
  EXPECT_TRUE(std::isnan(max_or_nan(1.0, nan)));
  EXPECT_TRUE(std::isnan(max_or_nan(nan, -inf)));
  EXPECT_TRUE(std::isnan(max_or_nan(-inf, nan)));
  EXPECT_EQ(max_or_nan(-inf, -3.0), -3.0);
  EXPECT_EQ(max_or_nan(4.0, -3.0), 4.0);
  EXPECT_FALSE(is_empty(nan));
}

// Owns the tensors of a step or merge over `rows` rows.
struct States {
  States(const attn_kernel& of, Index rows, Index keys, Index d_v, std::int32_t state_kind, bool strided = false)
      : kernel(of), kind(state_kind) {
    const std::int32_t wide = kernel.contract.acc_dtype;
    const std::vector<int> order = strided ? std::vector<int>{1, 0} : std::vector<int>{};
    for (int s = 0; s < 3; ++s) {
      m[s] = Tensor(wide, {rows});
      l[s] = Tensor(wide, {rows});
      acc[s] = Tensor(wide, {rows, d_v}, order, strided ? 2 : 0);
    }
    scores = Tensor(wide, {rows, keys}, order);
    v = Tensor(kernel.contract.in_dtype, {keys, d_v}, order);
    p.struct_size = sizeof p;
    p.op = kernel.op;
    p.state_kind = kind;
    attn_state* states[] = {&p.a, &p.b, &p.out};
    for (int s = 0; s < 3; ++s) {
      states[s]->m = m[s].view();
      if (kind != ATTN_STATE_OLSE) states[s]->l = l[s].view();
      if (kind != ATTN_STATE_ML) states[s]->acc = acc[s].view();
    }
    p.scores = scores.view();
    if (kind == ATTN_STATE_MLA) p.v = v.view();
  }
  std::string run() {
    char why[256] = "";
    if (kernel.supports(&p, why, sizeof why) != ATTN_OK) return why;
    EXPECT_EQ(kernel.workspace_size(&p), 0u);
    return kernel.run(&p, nullptr, 0, why, sizeof why) == ATTN_OK ? "" : why;
  }
  void set_state(int s, Index row, double m_value, double l_value, std::vector<double> values) {
    m[s].set({row}, m_value);
    l[s].set({row}, l_value);
    for (std::size_t e = 0; e < values.size(); ++e) acc[s].set({row, static_cast<Index>(e)}, values[e]);
  }
  void swap_sides() { std::swap(p.a, p.b); }

  const attn_kernel& kernel;
  std::int32_t kind;
  attn_problem p{};
  Tensor m[3], l[3], acc[3], scores, v;
};

std::vector<std::uint64_t> out_bits(const States& s, Index rows, Index d_v) {
  std::vector<std::uint64_t> all;
  for (Index r = 0; r < rows; ++r) {
    all.push_back(s.m[2].bits({r}));
    if (s.kind != ATTN_STATE_OLSE) all.push_back(s.l[2].bits({r}));
    for (Index e = 0; s.kind != ATTN_STATE_ML && e < d_v; ++e) all.push_back(s.acc[2].bits({r, e}));
  }
  return all;
}

TEST(Scan, WorkedExample) {
  for (const char* name : {"cpu.scan.fp64", "cpu.scan.fp32"}) {
    States s(kernel_named(name), 2, 4, 0, ATTN_STATE_ML);
    const double x[] = {1, 3, 2, 5};
    for (Index r = 0; r < 2; ++r) s.set_state(0, r, -inf, 0, {});
    for (Index j = 0; j < 4; ++j) {
      s.scores.set({0, j}, x[j]);
      s.scores.set({1, j}, -inf);
    }
    ASSERT_EQ(s.run(), "");
    EXPECT_EQ(s.m[2].get({0}), 5);
    EXPECT_NEAR(s.l[2].get({0}), 1.20343799049321082, std::strstr(name, "64") ? 1e-15 : 3e-7);
    EXPECT_EQ(s.m[2].get({1}), -inf);
    EXPECT_EQ(s.l[2].get({1}), 0);
  }
}

TEST(Step, WorkedExample) {
  for (const bool strided : {false, true}) {
    States s(kernel_named("cpu.step.fp64"), 2, 2, 2, ATTN_STATE_MLA, strided);
    s.set_state(0, 0, 1, 2, {1, 1});
    s.set_state(0, 1, -inf, 0, {0, 0});
    const double scores[2][2] = {{3, 0}, {-inf, 0.5}}, v[2][2] = {{1, 0}, {0, 1}};
    for (Index r = 0; r < 2; ++r)
      for (Index c = 0; c < 2; ++c) {
        s.scores.set({r, c}, scores[r][c]);
        s.v.set({r, c}, v[r][c]);
      }
    ASSERT_EQ(s.run(), "");
    const double want[2][4] = {{3, 1.32045763, 1.13533528, 0.18512235}, {0.5, 1, 0, 1}};
    for (Index r = 0; r < 2; ++r) {
      EXPECT_EQ(s.m[2].get({r}), want[r][0]);
      EXPECT_NEAR(s.l[2].get({r}), want[r][1], 5e-9);
      for (Index e = 0; e < 2; ++e) EXPECT_NEAR(s.acc[2].get({r, e}), want[r][2 + e], 5e-9);
    }
  }
}

// A block of blocked keys leaves a state as it is, whatever their values are; an empty state stays empty.
TEST(Step, BlockedKeysDoNothing) {
  for (const char* format : {"fp64", "fp32", "fp16.p16", "fp16.p32", "bf16.p16", "bf16.p32"}) {
    States s(kernel_named(std::string("cpu.step.") + format), 2, 300, 70, ATTN_STATE_MLA);
    s.set_state(0, 0, 1.5, 2.25, std::vector<double>(70, 0.3));
    s.set_state(0, 1, -inf, 0, std::vector<double>(70, 0));
    for (Index j = 0; j < 300; ++j) {
      for (Index r = 0; r < 2; ++r) s.scores.set({r, j}, -inf);
      for (Index e = 0; e < 70; ++e) s.v.set({j, e}, std::numeric_limits<double>::quiet_NaN());
    }
    ASSERT_EQ(s.run(), "");
    EXPECT_EQ(s.m[2].get({1}), -inf);
    EXPECT_EQ(s.l[2].get({1}), 0);
    EXPECT_EQ(s.l[2].get({0}), 2.25);
    for (Index e = 0; e < 70; ++e) {
      EXPECT_EQ(s.acc[2].bits({0, e}), s.acc[0].bits({0, e}));
      EXPECT_EQ(s.acc[2].get({1, e}), 0);
    }
  }
}

// Folding a step over chunks of the keys, any chunking, agrees with the definition.
TEST(Step, FoldsOverChunks) {
  const Index keys = 600, d_v = 67;
  for (const char* format : {"fp64", "fp32", "fp16.p16", "fp16.p32", "bf16.p16", "bf16.p32"})
    for (const Index chunk : {1, 37, 256, 257, 600}) {
      const attn_kernel& kernel = kernel_named(std::string("cpu.step.") + format);
      const std::int32_t weight = kernel.contract.p_dtype;
      const double u = kernel.contract.acc_dtype == ATTN_FP64 ? 0x1p-53 : 0x1p-24;
      const double u_weight = weight == ATTN_FP16 ? 0x1p-11 : weight == ATTN_BF16 ? 0x1p-8 : 0;
      Noise noise(7);
      States all(kernel, 1, keys, d_v, ATTN_STATE_MLA);
      for (Index j = 0; j < keys; ++j) {
        all.scores.set({0, j}, j < 40 ? -inf : noise.normal() * 5);
        for (Index e = 0; e < d_v; ++e) all.v.set({j, e}, noise.normal());
      }
      all.set_state(0, 0, -inf, 0, std::vector<double>(d_v, 0));
      for (Index first = 0; first < keys; first += chunk) {
        const Index n = std::min(chunk, keys - first);
        all.p.scores.data = static_cast<char*>(all.scores.view().data) + first * (u < 0x1p-30 ? 8 : 4);
        all.p.scores.shape[1] = all.p.v.shape[0] = n;
        const Index size = kernel.contract.in_dtype == ATTN_FP64 ? 8 : kernel.contract.in_dtype == ATTN_FP32 ? 4 : 2;
        all.p.v.data = static_cast<char*>(all.v.view().data) + first * d_v * size;
        ASSERT_EQ(all.run(), "");
        std::swap(all.p.a, all.p.out);
      }
      const int result = all.p.a.m.data == all.m[2].view().data ? 2 : 0;
      long double m = -inf, l = 0;
      for (Index j = 0; j < keys; ++j) m = std::max<long double>(m, all.scores.get({0, j}));
      for (Index j = 0; j < keys; ++j) l += expl(all.scores.get({0, j}) - m);
      // Every key and every chunk adds a few roundings of an argument up to 40.
      const double relative = (2.0 * static_cast<double>(keys) + 50) * u;
      EXPECT_EQ(all.m[result].get({0}), static_cast<double>(m));
      EXPECT_NEAR(all.l[result].get({0}), static_cast<double>(l), static_cast<double>(l) * relative);
      for (Index e = 0; e < d_v; ++e) {
        long double sum = 0, size = 0;
        for (Index j = 0; j < keys; ++j) {
          const long double term = expl(all.scores.get({0, j}) - m) * all.v.get({j, e});
          sum += term;
          size += fabsl(term);
        }
        EXPECT_NEAR(all.acc[result].get({0, e}), static_cast<double>(sum),
                    static_cast<double>(size) * (relative + u_weight))
            << format << " chunk " << chunk;
      }
    }
}

TEST(Step, SameBitsForAnyThreadCount) {
  const Index rows = 50, keys = 30, d_v = 7;
  for (const char* format : {"fp64", "fp32", "fp16.p16", "bf16.p32"}) {
    std::vector<std::uint64_t> want;
    for (const std::int32_t threads : {0, 1, 2, 4}) {
      States s(kernel_named(std::string("cpu.step.") + format), rows, keys, d_v, ATTN_STATE_MLA);
      Noise noise(9);
      for (Index r = 0; r < rows; ++r) {
        s.set_state(0, r, noise.normal(), 1, std::vector<double>(d_v, noise.normal()));
        for (Index j = 0; j < keys; ++j) s.scores.set({r, j}, noise.normal() * 3);
      }
      for (Index j = 0; j < keys; ++j)
        for (Index e = 0; e < d_v; ++e) s.v.set({j, e}, noise.normal());
      s.p.tiling.threads = threads;
      ASSERT_EQ(s.run(), "");
      if (want.empty()) want = out_bits(s, rows, d_v);
      EXPECT_EQ(out_bits(s, rows, d_v), want) << format << " threads " << threads;
    }
  }
}

const char* merge_names[] = {"cpu.merge-ml.fp64",  "cpu.merge-ml.fp32",   "cpu.merge-mla.fp64",
                             "cpu.merge-mla.fp32", "cpu.merge-olse.fp64", "cpu.merge-olse.fp32"};

std::int32_t kind_of(const std::string& name) {
  return name.find("-mla") != std::string::npos  ? ATTN_STATE_MLA
         : name.find("-ml") != std::string::npos ? ATTN_STATE_ML
                                                 : ATTN_STATE_OLSE;
}

void fill(States& s, Index rows, Index d_v, std::uint64_t seed) {
  Noise noise(seed);
  for (Index r = 0; r < rows; ++r)
    for (int side = 0; side < 2; ++side) {
      const bool empty = noise.below(5) == 0;
      std::vector<double> values;
      for (Index e = 0; e < d_v; ++e) values.push_back(empty ? 0 : noise.normal());
      const double spread[] = {1, 30, 500};
      s.set_state(side, r, empty ? -inf : noise.normal() * spread[noise.below(3)], empty ? 0 : 1 + noise.unit() * 9,
                  values);
    }
}

TEST(Merge, CommutesBitForBit) {
  for (const char* name : merge_names) {
    ASSERT_TRUE(kernel_named(name).contract.promises & ATTN_PROMISE_COMMUTATIVE_MERGE);
    States s(kernel_named(name), 200, 1, 13, kind_of(name), true);
    fill(s, 200, 13, 11);
    ASSERT_EQ(s.run(), "");
    const auto want = out_bits(s, 200, 13);
    s.swap_sides();
    ASSERT_EQ(s.run(), "");
    EXPECT_EQ(out_bits(s, 200, 13), want) << name;
  }
}

TEST(Merge, EmptyStateIsTheIdentity) {
  const double other[][2] = {{-inf, 0}, {3.5, 1.25}, {-1000, 7}, {0, 1}};
  for (const char* name : merge_names)
    for (const auto& state : other)
      for (const bool swapped : {false, true}) {
        States s(kernel_named(name), 1, 1, 3, kind_of(name));
        const double size = state[1] == 0 ? 0 : 1;
        s.set_state(0, 0, state[0], state[1], {0.1 * size, -1e30 * size, 1e-40 * size});
        s.set_state(1, 0, -inf, 0, {0, 0, 0});
        if (swapped) s.swap_sides();
        ASSERT_EQ(s.run(), "");
        EXPECT_EQ(s.m[2].bits({0}), s.m[0].bits({0})) << name;
        EXPECT_TRUE(s.kind == ATTN_STATE_OLSE || s.l[2].bits({0}) == s.l[0].bits({0})) << name;
        for (Index e = 0; s.kind != ATTN_STATE_ML && e < 3; ++e)
          EXPECT_EQ(s.acc[2].bits({0, e}), s.acc[0].bits({0, e})) << name;
      }
}

TEST(Merge, AgreesWithTheDefinition) {
  for (const char* name : merge_names) {
    States s(kernel_named(name), 200, 1, 5, kind_of(name));
    fill(s, 200, 5, 12);
    ASSERT_EQ(s.run(), "");
    const double u = s.kernel.contract.acc_dtype == ATTN_FP64 ? 0x1p-53 : 0x1p-24;
    for (Index r = 0; r < 200; ++r) {
      const long double a = s.m[0].get({r}), b = s.m[1].get({r}), m = std::max(a, b);
      if (std::isinf(static_cast<double>(m))) continue;
      const long double wa = expl(a - m), wb = expl(b - m);
      const double gap = std::isinf(static_cast<double>(a - b)) ? 0 : static_cast<double>(fabsl(a - b));
      const double relative = (gap < 100 ? gap + 8 : 8) * u;  // argument, exp, product, sum, division
      if (s.kind == ATTN_STATE_OLSE) {
        const auto lse = static_cast<double>(m + logl(wa + wb));
        EXPECT_NEAR(s.m[2].get({r}), lse, u * (std::fabs(lse) + 4) + relative) << name;
      } else {
        const auto l = static_cast<double>(wa * s.l[0].get({r}) + wb * s.l[1].get({r}));
        EXPECT_EQ(s.m[2].get({r}), static_cast<double>(m));
        EXPECT_NEAR(s.l[2].get({r}), l, l * relative) << name;
      }
      for (Index e = 0; s.kind != ATTN_STATE_ML && e < 5; ++e) {
        const long double x = wa * s.acc[0].get({r, e}), y = wb * s.acc[1].get({r, e});
        const long double by = s.kind == ATTN_STATE_OLSE ? wa + wb : 1;
        EXPECT_NEAR(s.acc[2].get({r, e}), static_cast<double>((x + y) / by),
                    static_cast<double>((fabsl(x) + fabsl(y)) / by) * relative + 0x1p-149)
            << name;
      }
    }
  }
}

// A NaN value counts even where the state's weight is 0.
TEST(Merge, NaNValueOfAnEmptySideIsKept) {
  for (const char* name : {"cpu.merge-mla.fp64", "cpu.merge-olse.fp32"}) {
    States s(kernel_named(name), 1, 1, 2, kind_of(name));
    s.set_state(0, 0, -inf, 0, {std::numeric_limits<double>::quiet_NaN(), 0});
    s.set_state(1, 0, 1, 1, {1, 1});
    ASSERT_EQ(s.run(), "");
    EXPECT_TRUE(std::isnan(s.acc[2].get({0, 0}))) << name;
    EXPECT_EQ(s.acc[2].get({0, 1}), 1) << name;
  }
}

TEST(Merge, NaNIsKept) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* name : merge_names)
    for (const bool swapped : {false, true}) {
      States s(kernel_named(name), 1, 1, 1, kind_of(name));
      s.set_state(0, 0, nan, nan, {nan});
      s.set_state(1, 0, 1, 1, {1});
      if (swapped) s.swap_sides();
      ASSERT_EQ(s.run(), "");
      EXPECT_TRUE(std::isnan(s.m[2].get({0}))) << name;
    }
}

}  // namespace
}  // namespace attn::test
