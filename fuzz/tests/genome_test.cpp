#include "fuzz/genome.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/genome_case.h"
#include "fuzz/mutate.h"
#include "oracle/recipe.h"

namespace attest::fuzz {
namespace {

std::vector<std::uint8_t> random_bytes(Random& random) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(random.between(0, random.chance(0.5) ? 120 : 700)));
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random.bits());
  return bytes;
}

Setting setting_for(Op op) {
  Setting s;
  s.op = op;
  if (op == Op::step) s.states = {StateKind::ml, StateKind::mla};
  if (op == Op::merge) s.states = {StateKind::ml, StateKind::mla, StateKind::olse};
  return s;
}

bool in_range(const Genome& g) {
  for (std::size_t n = 0; n < kGenes; ++n) {
    const auto gene = static_cast<Gene>(n);
    if (g[gene] < info(gene).lo || g[gene] > info(gene).hi) return false;
  }
  for (std::size_t p = 0; p < kPatterns; ++p)
    if (g.words[p].size() != g[after(Gene::period_0, p)]) return false;
  return true;
}

// For all bytes b and genomes g: decode(encode(g)) == g, and encode(decode(b)) is a fixed point.
TEST(Genome, EncodingIsCanonicalAndDecodingTotal) {
  Random random(1);
  for (int n = 0; n < 5000; ++n) {
    const auto bytes = random_bytes(random);
    const Genome g = decode(bytes);
    ASSERT_TRUE(in_range(g)) << n;
    const auto canonical = encode(g);
    ASSERT_EQ(decode(canonical), g) << n;
    ASSERT_EQ(encode(decode(canonical)), canonical) << n;
  }
}

TEST(Genome, NoBytesMeanTheDefault) {
  EXPECT_EQ(decode({}), Genome());
  EXPECT_TRUE(encode(Genome()).empty());
  const Case c = to_case(Genome(), setting_for(Op::forward));
  EXPECT_GT(c.shape.tq, 1);
  EXPECT_GT(c.shape.tk, 1);
}

// For all genomes and operations: the case is valid, and asks for no more work than a target can afford.
TEST(Genome, EveryGenomeIsAValidCase) {
  Random random(2);
  for (int n = 0; n < 3000; ++n) {
    const Genome g = decode(random_bytes(random));
    for (const Op op : {Op::forward, Op::step, Op::merge}) {
      const Case c = to_case(g, setting_for(op));
      ASSERT_NO_THROW(validate(c, "genome")) << to_text(c);
      if (g[Gene::size] < kMediumSize) {
        ASSERT_LE(c.shape.tq * c.shape.tk * c.shape.batch * c.shape.q_heads, 4096) << to_text(c);
      }
    }
  }
}

// Beginning once: the first words stand alone, the others are repeated behind them, along keys that were doubled.
TEST(Genome, PatternsBeginOnceAndKeysAreDoubled) {
  Genome g;
  g[Gene::tk] = 3, g[Gene::tk_doublings] = 2, g[Gene::d_qk] = 1, g[Gene::once] = 1;
  g.set_period(1, 3);
  for (std::size_t n = 0; n < 3; ++n) g.words[1][n] = word_of(static_cast<double>(n));
  const Case c = to_case(g, setting_for(Op::forward));
  EXPECT_EQ(c.shape.tk, 12);
  EXPECT_EQ(c.values.tensors.at("k").literal, (std::vector<double>{0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}));
}

TEST(Genome, MutantsAndCrossesAreGenomes) {
  Random random(3);
  Genome g, other = decode(random_bytes(random));
  for (int n = 0; n < 5000; ++n) {
    mutate(g, random);
    ASSERT_TRUE(in_range(g)) << n;
    ASSERT_EQ(decode(encode(g)), g) << n;
    if (n % 10 == 0) g = cross(g, other, random);
    ASSERT_TRUE(in_range(g)) << n;
    if (n % 100 == 0) other = g, g = Genome();
  }
}

// Every gene and every pattern is within reach of the moves.
TEST(Genome, MutationReachesEveryGene) {
  Random random(4);
  std::array<bool, kGenes> changed{};
  for (int n = 0; n < 20000; ++n) {
    Genome g;
    mutate(g, random);
    for (std::size_t i = 0; i < kGenes; ++i) changed[i] = changed[i] || g.genes[i] != Genome().genes[i];
  }
  for (std::size_t i = 0; i < kGenes; ++i) EXPECT_TRUE(changed[i]) << "gene " << i;
}

TEST(Genome, ExpensiveCasesHaveCheapChildren) {
  Random random(5);
  int stayed = 0;
  for (int n = 0; n < 1000; ++n) {
    Genome g;
    g[Gene::size] = kLongSize;
    make_cheaper(g, random);
    stayed += g[Gene::size] == kLongSize;
  }
  EXPECT_GT(stayed, 0);
  EXPECT_LT(stayed, 100);
}

TEST(Words, StandForTheNumbersThatTheyAreNearestTo) {
  for (const double x : {1.0, -1.0, 0.5, 3.25, -65504.0, 0x1p-15, 0x1.234568p-3, 0.0})
    EXPECT_EQ(number(word_of(x), 1, false, false), x) << x;
  EXPECT_TRUE(std::signbit(number(word_of(-0.0), 1, false, false)));
  Random random(6);
  for (int n = 0; n < 2000; ++n) {
    const auto w = static_cast<Word>(random.bits());
    const double x = number(w, 1, false, false);
    ASSERT_TRUE(std::isfinite(x));
    ASSERT_EQ(number(word_of(x), 1, false, false), x);
    // Continued below its own bits, a number stays between its neighbours.
    ASSERT_NEAR(number(w, 1, true, false), x, std::ldexp(std::fabs(x), -26));
  }
  EXPECT_TRUE(std::isnan(number((Word{31} << 26) | 1, 1, false, true)));
  EXPECT_EQ(number(Word{63} << 26, 1, false, true), -INFINITY);
}

TEST(Words, FrozenCasesKeepTheirNumbers) {
  Genome g;
  const Setting setting = setting_for(Op::forward);
  const auto before = make_values(to_case(g, setting));
  freeze(g, setting);
  const auto after_freezing = make_values(to_case(g, setting));
  for (const auto& [tensor, xs] : before)
    for (std::size_t n = 0; n < xs.size(); ++n)
      EXPECT_NEAR(after_freezing.at(tensor)[n], xs[n], 0x1p-16 + 0x1p-26 * std::fabs(xs[n])) << tensor << n;
}

}  // namespace
}  // namespace attest::fuzz
