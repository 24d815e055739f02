// What makes a device's kernels judgeable: problems that move to another memory, cases made for a picky kernel.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "impl/registry.h"
#include "properties/check.h"
#include "properties/device_view.h"
#include "properties/execute.h"
#include "properties/limits.h"

namespace attest {
namespace {

// Every pointer of a moved problem addresses the same bytes at the same offset of the copy.
TEST(MovedProblem, AddressesTheCopy) {
  Case c;
  c.shape = {.batch = 2, .q_heads = 2, .kv_heads = 1, .tq = 3, .tk = 5, .d_qk = 4, .d_v = 2};
  c.k_layout.row_padding = 3;
  c.mask.kv_len = {5, 2};
  c.mask.visible.pattern = "random";
  Problem here(c, {DType::fp32, DType::fp32});
  std::deque<std::vector<std::byte>> copies;
  std::vector<MovedSpan> moved;
  for (const std::span<std::byte> s : here.memory()) {
    copies.emplace_back(s.begin(), s.end());
    moved.push_back({s, copies.back().data()});
  }
  const attn_problem& p = here.abi();
  const attn_problem there = moved_problem(p, moved);
  const auto same = [&](const void* from, const void* to, std::size_t bytes) {
    ASSERT_NE(to, nullptr);
    EXPECT_NE(from, to);
    EXPECT_EQ(std::memcmp(from, to, bytes), 0);
  };
  same(p.q.data, there.q.data, 4 * 2 * 2 * 3 * 4);
  same(p.k.data, there.k.data, 4 * 4);
  same(p.v.data, there.v.data, 4 * 2 * 5 * 2);
  same(p.o.data, there.o.data, 4 * 2 * 2 * 3 * 2);
  same(p.lse.data, there.lse.data, 4 * 2 * 2 * 3);
  same(p.mask.visible.data, there.mask.visible.data, 2 * 2 * 3 * 5);
  same(p.mask.kv_len, there.mask.kv_len, 2 * sizeof(std::int64_t));
  EXPECT_EQ(there.mask.additive.data, nullptr);
  EXPECT_EQ(there.k.stride[2], p.k.stride[2]);
}

const attn_kernel& plain() {
  for (const attn_kernel& k : attn::cpu_kernels())
    if (std::string_view(k.name) == "cpu.fa2.fp32") return k;
  throw std::logic_error("no cpu.fa2.fp32");
}

bool takes_dimension(std::int64_t d) { return d % 8 == 0 && d >= 32 && d <= 256; }

std::int32_t picky_supports(const attn_problem* p, char* why, std::size_t size) {
  const bool good = takes_dimension(p->q.shape[3]) && takes_dimension(p->v.shape[3]) && p->tiling.block_k == 0 &&
                    p->k.stride[3] == 1 && p->k.stride[2] % 8 == 0;
  if (!good) return std::snprintf(why, size, "picky"), ATTN_REJECTED;
  return plain().supports(p, why, size);
}

// Most cases suit the kernel, some show that it refuses, and all are valid.
TEST(Limits, CasesAreMadeForAPickyKernel) {
  attn_kernel abi = plain();
  abi.supports = picky_supports;
  const Kernel kernel{&abi, "test.picky", "test", "fp32.fa2", {&abi}};
  ASSERT_TRUE(limits_of(kernel).picky);
  EXPECT_EQ(limits_of(kernel).dimensions.size(), 29u);
  EXPECT_FALSE(limits_of({&plain(), "cpu.fa2.fp32", "built-in", "fp32.fa2", {}}).picky);
  int taken = 0, refused = 0;
  for (std::uint64_t n = 0; n < 300; ++n) {
    Random random(n);
    const Case c = generate_case(kernel, *find_law("encloses"), random, 0.5);
    validate(c, "generated");
    Problem p(c, formats_for(kernel));
    ++(execute(kernel, p).status == Outcome::pass ? taken : refused);
  }
  EXPECT_GT(taken, 240);
  EXPECT_GT(refused, 5);
}

// Columns of zeros change neither what is computed nor whether it is.
TEST(Limits, WiderDimensionsKeepTheAnswer) {
  attn_kernel abi = plain();
  abi.supports = picky_supports;
  const Kernel picky{&abi, "test.picky", "test", "fp32.fa2", {&abi}}, free{&plain(), "", "", "", {}};
  Case c;
  c.scale = 0.5;
  c.shape = {.tq = 2, .tk = 3, .d_qk = 2, .d_v = 1};
  c.values.tensors["q"].literal = {1, -2, 0.5, 3};
  c.values.tensors["k"].literal = {1, 0, -1, 2, 0.25, 4};
  c.values.tensors["v"].literal = {1, 2, 3};
  const Case wide = with_accepted_dimensions(c, picky);
  EXPECT_EQ(wide.shape.d_qk, 32);
  EXPECT_EQ(wide.shape.d_v, 32);
  Problem a(c, formats_for(free)), b(wide, formats_for(picky));
  ASSERT_EQ(execute(free, a).status, Outcome::pass);
  ASSERT_EQ(execute(picky, b).status, Outcome::pass);
  EXPECT_EQ(a.output("lse"), b.output("lse"));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(a.output("o")[i], b.output("o")[i * 32]);
}

}  // namespace
}  // namespace attest
