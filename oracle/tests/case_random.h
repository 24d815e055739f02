// Random valid cases that use every field of the format.
#pragma once

#include <string>

#include "oracle/case.h"
#include "oracle/philox.h"
#include "oracle/recipe.h"

namespace attest {

// A case text with the smallest shape, one op and one more field.
inline std::string minimal(const std::string& shape, const std::string& more) {
  return R"({"schema": "attest-case/1", "op": "forward", "shape": {"tq": 1, "tk": 1, "d_qk": 1, "d_v": 2)" + shape +
         "}" + (more.empty() ? "" : ", ") + more + "}";
}

class Choice {
 public:
  explicit Choice(std::uint64_t seed) : random_(seed, 99) {}
  std::int64_t upto(std::int64_t n) {
    return static_cast<std::int64_t>(random_.bits(at_++) % static_cast<std::uint64_t>(n + 1));
  }
  bool coin() { return upto(1) == 1; }
  std::uint64_t bits() { return random_.bits(at_++); }
  // Any bit pattern, NaNs and infinities among them.
  double number() {
    const std::uint64_t x = bits();
    return std::bit_cast<double>(upto(3) == 0 ? x | 0x7ff0000000000000u : x);
  }

 private:
  RandomStream random_;
  std::uint64_t at_ = 0;
};

inline MaskTensor random_mask(Choice& pick, const Shape& s) {
  MaskTensor m;
  if (pick.coin()) return m;
  std::int64_t extents[4] = {s.batch, s.q_heads, s.tq, s.tk}, count = 1;
  if (pick.coin()) {
    for (std::int64_t& e : extents) e = pick.coin() ? e : 1;
    m.mask_shape.assign(extents, extents + 4);
  }
  for (std::int64_t e : extents) count *= e;
  if (pick.coin()) {
    m.pattern = mask_patterns()[static_cast<std::size_t>(pick.upto(7))];
    m.seed = pick.bits();
    m.density = pick.coin() ? 0.5 : static_cast<double>(pick.upto(100)) / 100;
  } else {
    for (std::int64_t i = 0; i < count; ++i) m.literal.push_back(pick.coin());
  }
  return m;
}

inline Layout random_layout(Choice& pick) {
  Layout l;
  if (pick.coin()) return l;
  l.heads_inside = pick.coin();
  l.row_padding = pick.upto(3);
  l.head_padding = pick.upto(2);
  return l;
}

inline std::vector<double> random_numbers(Choice& pick, const Extents& shape) {
  std::int64_t count = 1;
  for (std::int64_t e : shape) count *= e;
  std::vector<double> xs;
  for (std::int64_t i = 0; i < count; ++i) xs.push_back(pick.number());
  return xs;
}

inline Case random_case(std::uint64_t seed) {
  Choice pick(seed);
  Case c;
  c.op = static_cast<Op>(pick.upto(2));
  if (c.op == Op::step) c.state = pick.coin() ? StateKind::ml : StateKind::mla;
  if (c.op == Op::merge) c.state = static_cast<StateKind>(pick.upto(2));
  c.dtype = static_cast<DType>(pick.upto(4));
  Shape& s = c.shape;
  s.tq = pick.upto(4);
  s.d_v = 1 + pick.upto(3);
  if (c.op != Op::merge) s.tk = pick.upto(5);
  if (c.op == Op::merge) s.parts = 1 + pick.upto(4);
  if (c.op == Op::forward) {
    s.batch = pick.upto(2);
    s.kv_heads = 1 + pick.upto(2);
    s.q_heads = s.kv_heads * (1 + pick.upto(2));
    s.d_qk = 1 + pick.upto(3);
    if (pick.coin()) c.scale = pick.number();
    if (pick.coin()) c.out = OutDType::accumulator;
    if (pick.coin()) c.reserved = {pick.number(), pick.upto(3) - 1, pick.upto(3) - 1, pick.coin(), pick.coin()};
  }
  if (c.op != Op::merge) {
    c.mask.causal = static_cast<Causal>(pick.upto(2));
    if (pick.coin())
      for (std::int64_t b = 0; b < s.batch; ++b) c.mask.kv_len.push_back(pick.upto(s.tk));
    c.mask.visible = random_mask(pick, s);
    c.mask.additive = random_mask(pick, s);
  }
  for (Layout* l : {&c.q_layout, &c.k_layout, &c.v_layout, &c.o_layout}) *l = random_layout(pick);
  c.tiling = {pick.upto(9), pick.upto(9), pick.upto(4), static_cast<std::int32_t>(1 + pick.upto(3))};
  const Family& family =
      families()[static_cast<std::size_t>(pick.upto(static_cast<std::int64_t>(families().size()) - 1))];
  c.values.family = family.name;
  c.values.seed = pick.bits();
  for (const auto& [p, value] : family.parameters)
    if (pick.coin()) c.values.parameters[std::string(p)] = value;
  for (const char* tensor : {"q", "k", "v", "m", "l", "acc", "scores"})
    if (!input_shape(c, tensor).empty() && pick.upto(3) == 0)
      c.values.tensors[tensor].literal = random_numbers(pick, input_shape(c, tensor));
  for (const char* tensor : {"o", "lse", "m", "l", "acc"})
    if (!output_shape(c, tensor).empty() && pick.upto(3) == 0)
      c.expected.tensors[tensor] = random_numbers(pick, output_shape(c, tensor));
  if (!c.expected.tensors.empty()) c.expected.tolerance = 1e-8;
  if (pick.coin()) c.about = "a \"quoted\"\n\ttale, caf\xc3\xa9";
  if (pick.coin()) c.kernels = {"cpu.*", "other"};
  if (pick.coin()) c.laws = {"encloses"};
  return c;
}

}  // namespace attest
