// Generated cases are valid, reproducible, and reach the edges; shrinking ends.
#include <gtest/gtest.h>

#include <map>

#include "oracle/recipe.h"
#include "properties/check.h"
#include "properties/generate.h"
#include "properties/shapes.h"
#include "properties/tests/broken_kernels.h"

namespace attest {
namespace {

TEST(Generation, SameSeedSameCase) {
  const Kernel kernel = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::none);
  for (std::uint64_t n = 0; n < 50; ++n) {
    Random a(3, n), b(3, n);
    EXPECT_EQ(generate_case(kernel, laws()[0], a, 0.7), generate_case(kernel, laws()[0], b, 0.7)) << n;
  }
}

TEST(Generation, EveryCaseIsValidAndReadsBack) {
  for (const std::int32_t op : {ATTN_OP_FORWARD, ATTN_OP_STEP, ATTN_OP_MERGE}) {
    const Kernel kernel = broken::kernel(op, broken::Mistake::none);
    for (const Law& law : laws())
      for (std::uint64_t n = 0; n < 30; ++n) {
        Random random(5, n);
        const Case c = generate_case(kernel, law, random, static_cast<double>(n) / 30);
        EXPECT_NO_THROW(validate(c, "generated")) << law.name << " " << n << "\n" << to_text(c);
        EXPECT_EQ(parse_case(to_text(c), "generated"), c) << law.name << " " << n;
      }
  }
}

TEST(Generation, ReachesTheEdges) {
  const Kernel kernel = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::none);
  std::map<std::string, int> seen;
  for (std::uint64_t n = 0; n < 3000; ++n) {
    Random random(11, n);
    const Case c = generate_case(kernel, laws()[0], random, 0.5);
    const Shape& s = c.shape;
    const std::int64_t tile = c.tiling.block_k;
    seen["empty queries"] += s.tq == 0;
    seen["empty keys"] += s.tk == 0;
    seen["one query"] += s.tq == 1;
    seen["more queries than keys"] += s.tq > s.tk;
    seen["more keys than queries"] += s.tk > s.tq;
    seen["tile edge below"] += tile > 1 && s.tk == tile - 1;
    seen["tile edge"] += tile > 1 && s.tk == tile;
    seen["tile edge above"] += tile > 1 && s.tk == tile + 1;
    seen["block beyond sequence"] += tile > s.tk;
    seen["splits beyond blocks"] += tile > 0 && c.tiling.splits > (s.tk + tile - 1) / tile;
    seen["d_v is not d_qk"] += s.d_v != s.d_qk;
    seen["odd dimension"] += s.d_qk % 8 != 0;
    seen["groups of more than four"] += s.q_heads / s.kv_heads > 4;
    seen["batch"] += s.batch > 1;
    seen["top-left, Tq != Tk"] += c.mask.causal == Causal::top_left && s.tq != s.tk;
    seen["bottom-right, Tq > Tk"] += c.mask.causal == Causal::bottom_right && s.tq > s.tk;
    seen["no keys of a batch entry"] += !c.mask.kv_len.empty() && c.mask.kv_len[0] == 0;
    seen["boolean mask"] += c.mask.visible.present();
    seen["additive mask"] += c.mask.additive.present();
    seen["strides"] += c.k_layout.heads_inside;
    seen["threads"] += c.tiling.threads > 1;
    seen["the kernel's own tiling"] += tile == 0;
    seen["before output rounding"] += c.out == OutDType::accumulator;
    ++seen["family " + c.values.family];
  }
  for (const auto& [edge, count] : seen) EXPECT_GE(count, 10) << edge;
  for (const Family& f : families()) EXPECT_TRUE(seen.count("family " + std::string(f.name))) << f.name;
}

TEST(Shrinking, EndsAtTheSimplestCaseThatFails) {
  const Kernel kernel = broken::kernel(ATTN_OP_FORWARD, broken::Mistake::off_by_a_thousandth);
  Random random(13);
  Case c = generate_case(kernel, laws()[0], random, 1);
  c.shape.tq = c.shape.tk = 9;
  c.shape.batch = 2;
  c.mask = {};
  c.values.family = "gaussian";
  ASSERT_EQ(check_case(c, kernel, laws()[0], LawContext{}).outcome, Outcome::fail);
  const Case small = shrink_failure(c, kernel, laws()[0], LawContext{}, 500);
  EXPECT_EQ(small.shape.batch, 1);
  EXPECT_EQ(small.shape.tq, 1);
  EXPECT_EQ(small.shape.q_heads, 1);
  EXPECT_LE(small.shape.tk, 2);
  EXPECT_LE(small.shape.d_v, 2);
}

TEST(Shrinking, CutsLiterals) {
  Case c;
  c.shape.tq = 2;
  c.shape.tk = 3;
  c.values.tensors["k"] = TensorValues{{1, 2, 3}, ""};
  c.mask.visible.literal = {1, 0, 1, 0, 1, 1};
  c.mask.visible.mask_shape = {1, 1, 2, 3};
  Shape s = c.shape;
  s.tq = 1;
  s.tk = 2;
  const Case cut = with_shape(c, s);
  EXPECT_EQ(cut.values.tensors.at("k").literal, (std::vector<double>{1, 2}));
  EXPECT_EQ(cut.mask.visible.literal, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_NO_THROW(validate(cut, "cut"));
}

TEST(Globs, Match) {
  EXPECT_TRUE(glob_match("cpu.*.bf16*", "cpu.fa2.bf16.p16"));
  EXPECT_FALSE(glob_match("cpu.*.bf16", "cpu.fa2.bf16.p16"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("?a*2", "fa2"));
}

}  // namespace
}  // namespace attest
