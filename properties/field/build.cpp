#include "properties/field/build.h"

#include <utility>

namespace attest::field {
namespace {

MaskTensor mask_of(const Shape& s, Sees sees) {
  MaskTensor m;
  m.mask_shape = {1, 1, s.tq, s.tk};
  for (std::int64_t i = 0; i < s.tq; ++i)
    for (std::int64_t j = 0; j < s.tk; ++j) m.literal.push_back(sees(i, j, s.tq, s.tk));
  return m;
}

}  // namespace

Test forward(DType format, Dims dims, Causal causal, Fill fill) {
  Test t;
  t.problem.dtype = format;
  t.problem.shape = {
      dims.batch, dims.q_heads, dims.kv_heads, dims.tq, dims.tk, dims.d, dims.d_v > 0 ? dims.d_v : dims.d};
  t.problem.mask.causal = causal;
  t.fill = std::move(fill);
  return t;
}

Test heads_inside(Test t) {
  for (Layout* l : {&t.problem.q_layout, &t.problem.k_layout, &t.problem.v_layout, &t.problem.o_layout})
    l->heads_inside = true;
  return t;
}

Test with_kv_len(Test t, std::vector<std::int64_t> kv_len) {
  t.problem.mask.kv_len = std::move(kv_len);
  return t;
}

Test with_scale(Test t, double scale) {
  t.problem.scale = scale;
  return t;
}

Test with_softcap(Test t, double cap) {
  t.problem.reserved.softcap = cap;
  return t;
}

Test with_splits(Test t, std::int64_t splits) {
  t.problem.tiling.splits = splits;
  return t;
}

Test without_lse(Test t) {
  t.lse = false;
  return t;
}

Test with_rule(Test t, Rule rule) {
  t.rule = std::move(rule);
  return t;
}

Test with_runs(Test t, int runs, bool same_bits) {
  t.runs = runs;
  t.same_bits = same_bits;
  return t;
}

Test with_visible(Test t, Sees sees) {
  t.problem.mask.visible = mask_of(t.problem.shape, sees);
  return t;
}

Test with_additive(Test t, Sees sees) {
  t.problem.mask.additive = mask_of(t.problem.shape, sees);
  return t;
}

std::vector<Test> in_formats(const std::vector<Test>& tests, const std::vector<DType>& formats) {
  std::vector<Test> out;
  for (const Test& t : tests)
    for (DType format : formats) {
      out.push_back(t);
      out.back().problem.dtype = format;
    }
  return out;
}

std::string describe(const Test& t) {
  const Shape& s = t.problem.shape;
  const auto n = [](std::int64_t x) { return std::to_string(x); };
  std::string out = std::string(name(t.problem.dtype)) + " " + n(s.batch) + "x" + n(s.q_heads) + "/" + n(s.kv_heads) +
                    " " + n(s.tq) + "x" + n(s.tk) + " d" + n(s.d_qk);
  if (s.d_v != s.d_qk) out += "/" + n(s.d_v);
  if (t.problem.mask.causal != Causal::none) out += " " + std::string(name(t.problem.mask.causal));
  if (!t.problem.mask.kv_len.empty()) out += " kv_len";
  if (t.problem.mask.visible.present()) out += " boolean";
  if (t.problem.mask.additive.present()) out += " additive";
  if (t.problem.tiling.splits > 0) out += " splits " + n(t.problem.tiling.splits);
  if (t.problem.reserved.softcap > 0) out += " softcap";
  if (!t.lse) out += ", no LSE";
  if (t.same_bits) out += ", repeated";
  if (t.alone > 0) out += ", alone";
  return out;
}

}  // namespace attest::field
