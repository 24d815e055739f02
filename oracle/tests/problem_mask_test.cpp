// The predicate follows the definition, and the masks in memory say the same as it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "oracle/problem.h"

namespace attest {
namespace {

Case make(std::int64_t tq, std::int64_t tk) {
  Case c;
  c.shape = Shape{2, 4, 2, tq, tk, 3, 2, 2};
  return c;
}

Problem problem(const Case& c) { return Problem(c, {DType::fp32, DType::fp32}); }

std::string picture(const Problem& p, std::int64_t b = 0, std::int64_t h = 0) {
  std::string s;
  for (std::int64_t i = 0; i < p.source().shape.tq; ++i) {
    for (std::int64_t j = 0; j < p.source().shape.tk; ++j) s += p.visible(b, h, i, j) ? '1' : '0';
    s += ' ';
  }
  return s;
}

TEST(ProblemMask, CausalAlignments) {
  Case c = make(3, 5);
  c.mask.causal = Causal::top_left;
  EXPECT_EQ("10000 11000 11100 ", picture(problem(c)));
  c.mask.causal = Causal::bottom_right;
  EXPECT_EQ("11100 11110 11111 ", picture(problem(c)));
  c = make(4, 2);
  c.mask.causal = Causal::bottom_right;
  EXPECT_EQ("00 00 10 11 ", picture(problem(c)));
  c.mask.causal = Causal::top_left;
  EXPECT_EQ("10 11 11 11 ", picture(problem(c)));
}

TEST(ProblemMask, MasksCombine) {
  Case c = make(2, 4);
  c.mask.kv_len = {3, 0};
  c.mask.visible.literal = {0, 1, 1, 1};
  c.mask.visible.mask_shape = {1, 1, 1, 4};
  c.mask.additive.literal = {1, 0};
  c.mask.additive.mask_shape = {1, 1, 2, 1};
  const Problem p = problem(c);
  EXPECT_EQ("0110 0000 ", picture(p, 0, 3));
  EXPECT_EQ("0000 0000 ", picture(p, 1, 0));
}

// Reads a mask as a kernel does.
bool let_through(const attn_tensor& t, const std::int64_t (&index)[4]) {
  std::int64_t at = 0;
  for (int axis = 0; axis < 4; ++axis) at += index[axis] * t.stride[axis];
  if (t.dtype == ATTN_U8) return static_cast<const std::uint8_t*>(t.data)[at] != 0;
  const float x = static_cast<const float*>(t.data)[at];
  EXPECT_TRUE(x == 0 || x == -INFINITY);
  return x == 0;
}

TEST(ProblemMask, MemorySaysTheSameAsThePredicate) {
  for (int broadcast = 0; broadcast < 16; ++broadcast)
    for (bool additive : {false, true}) {
      Case c = make(3, 5);
      MaskTensor& m = additive ? c.mask.additive : c.mask.visible;
      m.pattern = "random";
      m.seed = static_cast<std::uint64_t>(broadcast);
      const std::int64_t full[4] = {2, 4, 3, 5};
      for (int axis = 0; axis < 4; ++axis) m.mask_shape.push_back(broadcast >> axis & 1 ? 1 : full[axis]);
      const Problem p = problem(c);
      const attn_tensor& t = additive ? p.abi().mask.additive : p.abi().mask.visible;
      for (int axis = 0; axis < 4; ++axis) ASSERT_EQ(full[axis], t.shape[axis]);
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 4; ++h)
          for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < 5; ++j)
              ASSERT_EQ(p.visible(b, h, i, j), let_through(t, {b, h, i, j})) << broadcast;
      EXPECT_EQ("", p.untouched_report());
    }
}

TEST(ProblemMask, SeenKeysAreThoseOfSomeRowOfTheGroup) {
  Case c = make(2, 6);
  c.mask.causal = Causal::top_left;
  c.mask.visible.literal.assign(2 * 4 * 2 * 6, 0);
  // Only query head 3 of batch 0 looks at key 1, from row 1; it reads kv head 1.
  c.mask.visible.literal[((0 * 4 + 3) * 2 + 1) * 6 + 1] = 1;
  // And at key 4, which causality hides.
  c.mask.visible.literal[((0 * 4 + 3) * 2 + 1) * 6 + 4] = 1;
  const Problem p = problem(c);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t j = 0; j < 6; ++j) EXPECT_EQ(b == 0 && h == 1 && j == 1, p.key_seen(b, h, j));
}

// Unseen keys hold the poison, or other finite values; seen ones do not change with either.
TEST(ProblemMask, UnseenKeysArePoisoned) {
  for (DType format : {DType::fp64, DType::fp32, DType::fp16, DType::bf16}) {
    Case c = make(2, 6);
    c.mask.kv_len = {4, 6};
    const Formats formats{format, format == DType::fp64 ? DType::fp64 : DType::fp32};
    const Problem nan(c, formats);
    ProblemOptions options;
    options.invisible_seed = 5;
    const Problem finite(c, formats, options);
    options.invisible_seed = 6;
    const Problem other(c, formats, options);
    for (const char* tensor : {"k", "v"}) {
      const std::int64_t width = tensor[0] == 'k' ? 3 : 2;
      const auto a = nan.input(tensor), b = finite.input(tensor), d = other.input(tensor);
      bool differ = false;
      for (std::int64_t i = 0; i < 2 * 2 * 6 * width; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t key = i / width % 6, batch = i / width / 12;
        if (nan.key_seen(batch, i / width / 6 % 2, key)) {
          ASSERT_EQ(a[at], b[at]);
          ASSERT_TRUE(std::isfinite(a[at]));
        } else {
          ASSERT_EQ(0, batch);
          ASSERT_GE(key, 4);
          ASSERT_TRUE(std::isnan(a[at]));
          ASSERT_TRUE(std::isfinite(b[at]));
          differ = differ || b[at] != d[at];
        }
      }
      ASSERT_TRUE(differ);
    }
    EXPECT_EQ("", nan.untouched_report());
    EXPECT_EQ("", finite.untouched_report());
  }
}

}  // namespace
}  // namespace attest
