// Cases made for kernels that take few shapes. Those of a device can only be asked where it is, so this one is as
// narrow as the narrowest of them.
#include "fuzz/limited_case.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "fuzz/genome_case.h"
#include "impl/registry.h"
#include "oracle/problem.h"
#include "properties/execute.h"
#include "properties/generate.h"

namespace attest::fuzz {
namespace {

const attn_kernel& plain() {
  for (const attn_kernel& k : attn::cpu_kernels())
    if (std::string_view(k.name) == "cpu.fa2.fp32") return k;
  throw std::logic_error("no cpu.fa2.fp32");
}

bool rows_of_16_bytes(const attn_tensor& t) { return t.stride[3] == 1 && t.stride[2] % 4 == 0 && t.stride[1] % 4 == 0; }

// Head dims of multiples of 8 from 32 to 256, no tiles but its own, rows of q, k and v on 16-byte borders, causal only.
std::int32_t narrow_supports(const attn_problem* p, char* why, std::size_t size) {
  const auto takes = [](std::int64_t d) { return d % 8 == 0 && d >= 32 && d <= 256; };
  const bool good = takes(p->q.shape[3]) && takes(p->v.shape[3]) && p->tiling.block_q == 0 && p->tiling.block_k == 0 &&
                    p->tiling.splits <= 1 && rows_of_16_bytes(p->q) && rows_of_16_bytes(p->k) &&
                    rows_of_16_bytes(p->v) && p->mask.causal != ATTN_CAUSAL_NONE;
  if (!good) return std::snprintf(why, size, "too wide"), ATTN_REJECTED;
  return plain().supports(p, why, size);
}

class Narrow : public ::testing::Test {
 protected:
  Narrow() {
    abi_.supports = narrow_supports;
    abi_.contract.default_block_q = 128;
    abi_.contract.default_block_k = 80;
    setting_.limited = limits_for_search(kernel_);
    // As for a kernel of a device.
    setting_.limited.tile_q = 128;
    setting_.limited.tile_k = 80;
  }
  Case made(const Genome& g) const { return made_for(to_case(g, setting_), kernel_, setting_.limited); }

  static Genome random_genome(Random& random) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(random.between(0, 300)));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random.bits());
    return decode(bytes);
  }

  // Limits are remembered by the kernel's address.
  static inline attn_kernel abi_ = plain();
  Kernel kernel_{&abi_, "test.narrow", "test", "fp32.fa2", {&abi_}};
  Setting setting_;
};

TEST_F(Narrow, IsAskedForItsLimits) {
  EXPECT_EQ(setting_.limited.dimensions.size(), 29u);
  EXPECT_TRUE(setting_.limited.causal);
  const Kernel wide{&plain(), "cpu.fa2.fp32", "built-in", "fp32.fa2", {}};
  EXPECT_TRUE(limits_for_search(wide).dimensions.empty());
  EXPECT_EQ(limits_for_search(wide).tile_k, 0);
}

// Of a thousand genomes at random nearly every one makes a valid case that the kernel takes.
TEST_F(Narrow, MostGenomesAreTaken) {
  Random random(1);
  int taken = 0;
  for (int n = 0; n < 1000; ++n) {
    const Case c = made(random_genome(random));
    ASSERT_NO_THROW(validate(c, "made")) << to_text(c);
    const Problem p(c, formats_for(kernel_));
    char why[256] = "";
    taken += abi_.supports(&p.abi(), why, sizeof why) == ATTN_OK;
  }
  EXPECT_GE(taken, 980);
}

// Single keys and the ends of the first tiles, all head dims, masks of tensors: nothing is given up for being taken.
TEST_F(Narrow, TheyStillDiffer) {
  Random random(2);
  std::set<std::int64_t> lengths, dimensions;
  bool masked = false;
  for (int n = 0; n < 1500; ++n) {
    Genome g = random_genome(random);
    g[Gene::size] = kMediumSize;
    const Case c = made(g);
    lengths.insert(c.shape.tk);
    dimensions.insert(c.shape.d_qk);
    masked = masked || !c.mask.visible.pattern.empty();
  }
  for (const std::int64_t n : {0, 1, 2, 79, 80, 81, 159, 160, 161}) EXPECT_TRUE(lengths.contains(n)) << n;
  EXPECT_EQ(dimensions.size(), 29u);
  EXPECT_TRUE(masked);
}

// A check of a small case takes less than a millisecond, whatever the genome: 10 ns for each judged score and element.
TEST_F(Narrow, CostIsBounded) {
  Random random(3);
  for (int n = 0; n < 1000; ++n) {
    Genome g = random_genome(random);
    g[Gene::size] = 0;
    const Shape s = made(g).shape;
    const std::int64_t heads = s.batch * s.q_heads, width = s.d_qk + s.d_v;
    EXPECT_LE(std::min(heads * s.tq, kJudgedRows) * s.tk * width + heads * s.tq * width, 60'000) << n;
  }
}

TEST(Lengths, GenesReachTheEndsOfTiles) {
  EXPECT_EQ(length_of(7, 64, 0), 7);
  EXPECT_EQ(length_of(64, 64, 0), 64);
  EXPECT_EQ(length_of(32, 64, 80), 32);
  EXPECT_EQ(length_of(33, 64, 80), 78);
  EXPECT_EQ(length_of(36, 64, 80), 81);
  EXPECT_EQ(length_of(40, 64, 80), 160);
  for (int gene = 0; gene <= 40; ++gene)
    EXPECT_GE(length_of(static_cast<std::uint8_t>(gene), 40, 1), gene == 0 ? 0 : 1);
}

}  // namespace
}  // namespace attest::fuzz
