// Memory: layouts, guard zones, what is noticed when it changes, and the view that a kernel gets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "oracle/format.h"
#include "oracle/problem.h"
#include "oracle/tests/case_random.h"

namespace attest {
namespace {

Case make() {
  Case c;
  c.shape = Shape{2, 4, 2, 3, 5, 6, 7, 2};
  c.values.seed = 9;
  return c;
}

const Formats half{DType::fp16, DType::fp32};

double element(const attn_tensor& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  const DType format = t.dtype == ATTN_FP16 ? DType::fp16 : DType::fp32;
  const std::int64_t at = a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
  return decode(format, load_bits(format, static_cast<const char*>(t.data) + at * bytes_of(format)));
}

TEST(ProblemMemory, EveryLayoutHoldsTheSameValues) {
  const Problem dense(make(), half);
  for (bool inside : {false, true})
    for (std::int64_t row : {0, 3})
      for (std::int64_t head : {0, 2}) {
        Case c = make();
        c.q_layout = c.k_layout = c.v_layout = c.o_layout = {inside, row, head};
        const Problem p(c, half);
        ASSERT_EQ("", p.untouched_report());
        const attn_tensor& k = p.abi().k;
        std::set<std::int64_t> offsets;
        for (std::int64_t b = 0; b < 2; ++b)
          for (std::int64_t h = 0; h < 2; ++h)
            for (std::int64_t j = 0; j < 5; ++j)
              for (std::int64_t e = 0; e < 6; ++e) {
                const auto logical = static_cast<std::size_t>(((b * 2 + h) * 5 + j) * 6 + e);
                ASSERT_EQ(dense.input("k")[logical], element(k, b, h, j, e));
                offsets.insert(b * k.stride[0] + h * k.stride[1] + j * k.stride[2] + e * k.stride[3]);
              }
        EXPECT_EQ(120u, offsets.size());  // no two elements share a place
        EXPECT_EQ(1, k.stride[3]);
        EXPECT_EQ(inside, k.stride[1] < k.stride[2]);
      }
}

TEST(ProblemMemory, ValuesAreRoundedToStorage) {
  const Case c = make();
  const Problem wide(c, {DType::fp64, DType::fp64});
  for (DType format : {DType::fp32, DType::fp16, DType::bf16}) {
    const Problem p(c, {format, DType::fp32});
    for (const char* tensor : {"q", "k", "v"})
      for (std::size_t i = 0; i < wide.input(tensor).size(); ++i)
        ASSERT_EQ(round_to(format, wide.input(tensor)[i]), p.input(tensor)[i]);
  }
}

TEST(ProblemMemory, TheCaseDecidesTheFormatWhereItSaysOne) {
  Case c = make();
  EXPECT_EQ(ATTN_FP16, Problem(c, half).abi().o.dtype);
  EXPECT_EQ(ATTN_FP32, Problem(c, half).abi().lse.dtype);
  c.out = OutDType::accumulator;
  EXPECT_EQ(ATTN_FP32, Problem(c, half).abi().o.dtype);
  c.dtype = DType::bf16;
  EXPECT_EQ(ATTN_BF16, Problem(c, half).abi().q.dtype);
  EXPECT_EQ(DType::bf16, Problem(c, half).formats().storage);
}

std::byte* bytes(const attn_tensor& t) { return static_cast<std::byte*>(t.data); }

// Flips one byte and expects the report to name what was hit; then flips it back.
void expect_noticed(Problem& p, std::byte* at, const std::string& what) {
  *at ^= std::byte{1};
  EXPECT_NE(std::string::npos, p.untouched_report().find(what)) << what << ": " << p.untouched_report();
  *at ^= std::byte{1};
  EXPECT_EQ("", p.untouched_report());
}

TEST(ProblemMemory, EveryChangeIsNoticed) {
  Case c = make();
  c.q_layout.row_padding = c.o_layout.row_padding = 2;
  c.v_layout.head_padding = 1;
  c.mask.visible.pattern = c.mask.additive.pattern = "random";
  c.mask.kv_len = {5, 4};
  c.reserved.bias = c.reserved.sinks = true;
  Problem p(c, half);
  ASSERT_EQ("", p.untouched_report());
  const attn_problem& abi = p.abi();
  const std::int64_t q_end = 2 * 4 * 3 * 8 * 2, o_end = 2 * 4 * 3 * 9 * 2;
  expect_noticed(p, bytes(abi.q), "q[0,0,0,0]: input");
  expect_noticed(p, bytes(abi.q) + 8 * 2 * 4 + 5 * 2 + 1, "q[0,1,1,5]: input");
  expect_noticed(p, bytes(abi.q) + 6 * 2, "q: padding");
  expect_noticed(p, bytes(abi.v) + 5 * 7 * 2, "v: padding");
  expect_noticed(p, bytes(abi.q) - 1, "q: written outside of the tensor, 1 byte before");
  expect_noticed(p, bytes(abi.q) - 256, "256 bytes before");
  expect_noticed(p, bytes(abi.q) + q_end, "1 byte past");
  expect_noticed(p, bytes(abi.q) + q_end + 255, "256 bytes past");
  expect_noticed(p, bytes(abi.o) + 7 * 2, "o: padding");
  expect_noticed(p, bytes(abi.o) - 1, "o: written outside");
  expect_noticed(p, bytes(abi.o) + o_end, "o: written outside");
  expect_noticed(p, bytes(abi.lse) + 3 * 4, "lse: padding");  // LSE is padded as O is
  expect_noticed(p, bytes(abi.lse) + 2 * 4 * (3 + 2) * 4, "lse: written outside");
  expect_noticed(p, bytes(abi.mask.visible) + 17, "mask.visible: element 17");
  expect_noticed(p, bytes(abi.mask.additive) + 8, "mask.additive: element 2");
  expect_noticed(p, bytes(abi.mask.additive) - 3, "mask.additive: written outside");
  expect_noticed(p, reinterpret_cast<std::byte*>(const_cast<std::int64_t*>(abi.mask.kv_len)) + 8,
                 "mask.kv_len: element 1");
  expect_noticed(p, bytes(abi.bias), "bias: element 0");
  expect_noticed(p, bytes(abi.sinks), "sinks: element 0");
  // Outputs may be written, all of them.
  p.prefill(0x11);
  EXPECT_EQ("", p.untouched_report());
}

TEST(ProblemMemory, OutputsArePrefilledAndReadBack) {
  ProblemOptions options;
  options.output_prefill = 0x3c;
  Problem p(make(), half, options);
  EXPECT_EQ(decode(DType::fp16, 0x3c3c), p.output("o")[0]);
  EXPECT_EQ(0x3c3c3c3cu, p.output_bits("lse").back());
  const std::uint64_t minus_zero = 0x8000;
  std::memcpy(p.abi().o.data, &minus_zero, 2);
  EXPECT_EQ(0u, p.output_bits("o")[0]);  // -0 counts as +0
  EXPECT_EQ(0x3c3cu, p.output_bits("o")[1]);
  p.prefill(0xff);
  for (const char* name : {"o", "lse"})
    for (double x : p.output(name)) ASSERT_TRUE(std::isnan(x));
  EXPECT_TRUE(p.has_output("o") && p.has_output("lse"));
  EXPECT_FALSE(p.has_output("m"));
  p.mutable_abi().lse = {};
  EXPECT_FALSE(p.has_output("lse"));
}

TEST(ProblemMemory, InputsCanBeSet) {
  Problem p(make(), half);
  p.set_input("v", 3, 0.1);
  EXPECT_EQ(round_to(DType::fp16, 0.1), p.input("v")[3]);
  EXPECT_EQ(p.input("v")[3], element(p.abi().v, 0, 0, 0, 3));
  EXPECT_EQ("", p.untouched_report());
  EXPECT_THROW(p.set_input("v", 1 << 20, 0), std::out_of_range);
}

TEST(ProblemMemory, StepsHaveStatesScoresAndValues) {
  Case c;
  c.op = Op::step;
  c.shape.tq = 3;
  c.shape.tk = 5;
  c.shape.d_v = 2;
  c.k_layout.row_padding = 1;
  Problem p(c, half);
  const attn_problem& abi = p.abi();
  EXPECT_EQ(ATTN_OP_STEP, abi.op);
  EXPECT_EQ(ATTN_STATE_MLA, abi.state_kind);
  EXPECT_EQ(2, abi.scores.rank);
  EXPECT_EQ(5, abi.scores.shape[1]);
  EXPECT_EQ(3, abi.a.acc.stride[0]);
  EXPECT_EQ(ATTN_FP32, abi.a.m.dtype);
  EXPECT_EQ(ATTN_FP16, abi.v.dtype);
  EXPECT_EQ(nullptr, abi.q.data);
  EXPECT_EQ(nullptr, abi.b.m.data);
  EXPECT_TRUE(p.has_output("m") && p.has_output("l") && p.has_output("acc"));
  c.state = StateKind::ml;
  c.k_layout = {};
  const Problem ml(c, half);
  EXPECT_EQ(nullptr, ml.abi().v.data);
  EXPECT_EQ(nullptr, ml.abi().a.acc.data);
  EXPECT_FALSE(ml.has_output("acc"));
}

TEST(ProblemMemory, MergesPointAtParts) {
  Case c;
  c.op = Op::merge;
  c.state = StateKind::olse;
  c.shape.parts = 4;
  c.shape.tq = 3;
  c.shape.d_v = 2;
  c.k_layout = {false, 1, 2};
  std::vector<double> o, lse;
  for (int i = 0; i < 24; ++i) o.push_back(i);
  for (int i = 0; i < 12; ++i) lse.push_back(100 + i);
  c.values.tensors["o"].literal = o;
  c.values.tensors["lse"].literal = lse;
  Problem p(c, half);
  EXPECT_EQ(o, std::vector<double>(p.input("acc").begin(), p.input("acc").end()));
  p.select_parts(3, 1);
  const attn_problem& abi = p.abi();
  EXPECT_EQ(1, abi.a.m.rank);
  EXPECT_EQ(109, static_cast<const float*>(abi.a.m.data)[0]);
  EXPECT_EQ(105, static_cast<const float*>(abi.b.m.data)[2]);
  EXPECT_EQ(3, abi.a.acc.stride[0]);
  EXPECT_EQ(18, static_cast<const float*>(abi.a.acc.data)[0]);
  EXPECT_EQ(9, static_cast<const float*>(abi.b.acc.data)[1 * 3 + 1]);
  EXPECT_EQ(nullptr, abi.a.l.data);
  EXPECT_FALSE(p.has_output("l"));
  EXPECT_THROW(p.select_parts(0, 4), std::out_of_range);
  static_cast<std::byte*>(abi.a.acc.data)[0] ^= std::byte{1};
  EXPECT_EQ("acc[3,0,0]: input overwritten; inputs must not be written", p.untouched_report());
}

TEST(ProblemMemory, EmptyExtentsHaveAddressesAndNoElements) {
  for (int which = 0; which < 3; ++which) {
    Case c = make();
    (which == 0 ? c.shape.batch : which == 1 ? c.shape.tq : c.shape.tk) = 0;
    c.q_layout.row_padding = 3;
    c.k_layout.head_padding = 2;
    const Problem p(c, half);
    EXPECT_NE(nullptr, p.abi().q.data);
    EXPECT_NE(nullptr, p.abi().k.data);
    EXPECT_EQ("", p.untouched_report());
    EXPECT_EQ(which == 2 ? 2u * 4 * 3 * 7 : 0u, p.output("o").size());
  }
}

TEST(ProblemMemory, EveryRandomCaseMakesAProblem) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Case c = random_case(seed);
    const Problem p(c, {seed % 2 ? DType::bf16 : DType::fp32, DType::fp32});
    ASSERT_EQ("", p.untouched_report()) << "seed " << seed;
    ASSERT_EQ(sizeof(attn_problem), p.abi().struct_size);
  }
}

TEST(ProblemMemory, BytesAreCountedBeforeTheyAreTaken) {
  Case c = make();
  const double small = problem_bytes(c, half);
  EXPECT_GT(small, 2 * 4 * 3 * 7 * 2);
  c.shape.tk = 1 << 20;
  EXPECT_GT(problem_bytes(c, half), 2.0 * 2 * (1 << 20) * 13 * 2);
  c.shape.tq = 1 << 20;
  const double dense = problem_bytes(c, half);
  EXPECT_LT(dense, 1e10);  // linear: no score matrix
  c.mask.visible.pattern = "random";
  EXPECT_GT(problem_bytes(c, half), 8.0 * (1 << 20) * (1 << 20));
  c.mask.visible.mask_shape = {1, 1, 1, 1 << 20};
  EXPECT_LT(problem_bytes(c, half), dense + 3e6);
}

}  // namespace
}  // namespace attest
