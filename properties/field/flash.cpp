// FlashAttention 2 and 3.
#include <algorithm>
#include <cmath>

#include "oracle/format.h"
#include "properties/field/build.h"
#include "properties/field/rules.h"
#include "properties/field/table.h"
#include "properties/field/values.h"

namespace attest::field {
namespace {

constexpr DType f16 = DType::fp16, b16 = DType::bf16;
constexpr Causal none = Causal::none, bottom = Causal::bottom_right;

// The fp32 reference cast back to 16 bits, and the same with every intermediate tensor in 16 bits and K scaled.
constexpr Arithmetic upcast = {.output = DType::any};
constexpr Arithmetic reordered = {DType::any, DType::any, DType::any, Arithmetic::Scale::k, true};

Rule at_most(double factor, double atol) {
  return [=](const Subject& s) {
    const double unfused = max_error(s.reference.unfused, s.reference.want.o);
    return max_error(s.got.o, s.reference.want.o) <= factor * unfused + atol;
  };
}

// FlashAttention 3: the atol is twice what adding and subtracting 0.3 does to the reference in its format.
bool fa3(const Subject& s) {
  double grain = 0;
  const auto add = [&](double x, double y) { return round_to(s.format, x + y); };
  for (double x : s.reference.want.o) grain = std::max(grain, std::fabs(add(add(x, 0.3), -0.3) - x));
  return at_most(2, 2 * grain)(s);
}

bool fa3_decode(const Subject& s) {
  // The mean is held to 1.5 times that of the unfused maths.
  return at_most(2, 1e-5)(s) &&
         mean_error(s.got.o, s.reference.want.o) <= 1.5 * mean_error(s.reference.unfused, s.reference.want.o);
}

}  // namespace

Project flash_attention_2() {
  Project p;
  p.name = "FlashAttention 2", p.column = "FA2";
  p.source =
      "Dao-AILab/flash-attention@0251105a tests/test_flash_attn.py:217-310 (reference), 866-1121 (output), "
      "1450-1556 (causal), 1858-2140 (kvcache), 2203-2226 (race)";
  p.inputs = "N(0, 1) in fp16 and bf16, seed 0";
  p.reference_text = "fp32, O cast to 16 bits";
  p.rule_text =
      "max |O - ref| <= 2 max |unfused 16-bit - ref| (3 x with a cache), + 1e-5 in the causal and cache tests";
  p.blind = "LSE is compared only between two runs";
  p.want = upcast, p.unfused = reordered;
  p.rule = at_most(2, 0);
  p.reference_after = true;
  const Fill n = normal();
  const Rule causal = at_most(2, 1e-5), cache = at_most(3, 1e-5);
  const auto add = [&](Test t) { p.tests.push_back(heads_inside(std::move(t))); };
  for (const Test& t :
       in_formats({forward(f16, {1, 6, 2, 28, 51, 64}, none, n), forward(f16, {2, 3, 3, 27, 53, 59}, bottom, n),
                   forward(f16, {1, 2, 1, 64, 32, 128}, bottom, n),
                   with_rule(forward(f16, {2, 3, 3, 31, 129, 40}, bottom, n), causal),
                   with_rule(forward(f16, {1, 3, 3, 128, 31, 32}, bottom, n), causal)},
                  {f16, b16}))
    add(t);
  add(with_rule(with_kv_len(with_splits(forward(f16, {2, 6, 3, 1, 339, 59}, none, n), 3), {200, 339}), cache));
  add(with_rule(with_kv_len(with_splits(forward(f16, {2, 6, 1, 3, 799, 64}, bottom, n), 4), {799, 123}), cache));
  add(with_rule(with_kv_len(forward(f16, {2, 2, 2, 16, 200, 128}, none, n), {1, 130}), cache));
  add(with_rule(with_splits(forward(f16, {1, 2, 1, 1, 2048, 32}, none, n), 20), cache));
  add(with_softcap(forward(f16, {1, 2, 2, 28, 51, 64}, bottom, normal(1, 50)), 50));
  add(with_runs(forward(f16, {3, 3, 3, 25, 25, 64}, bottom, n), 2, true));
  return p;
}

Project flash_attention_3() {
  Project p;
  p.name = "FlashAttention 3", p.column = "FA3";
  p.source =
      "Dao-AILab/flash-attention@0251105a hopper/test_flash_attn.py:115-285 (output), 663-1051 (kvcache), "
      "1120-1164 (race), 1179-1218 (combine)";
  p.inputs = "N(0, 1) in fp16 and bf16, seed 0; d_v != d; 1 and 3 splits";
  p.reference_text = "fp32, O cast to 16 bits";
  p.rule_text =
      "max |O - ref| <= 2 max |unfused 16-bit - ref| + 2 max |(ref + 0.3 - 0.3) - ref|; with a cache + 1e-5 and "
      "the mean within 1.5 x";
  p.blind = "LSE is compared in the combine test alone (1e-5)";
  p.want = upcast, p.unfused = reordered;
  p.rule = fa3;
  const Fill n = normal();
  const auto add = [&](Test t) { p.tests.push_back(with_runs(heads_inside(std::move(t)), 2, t.same_bits)); };
  for (const Test& t :
       in_formats({forward(f16, {3, 1, 1, 1, 1, 64}, none, n), forward(f16, {1, 6, 2, 28, 51, 64, 128}, none, n),
                   forward(f16, {2, 3, 1, 27, 53, 96}, bottom, n),
                   with_splits(forward(f16, {1, 3, 3, 60, 1, 64}, bottom, n), 3),
                   with_splits(forward(f16, {1, 2, 1, 32, 54, 128}, bottom, n), 3),
                   forward(f16, {1, 1, 1, 96, 64, 128}, bottom, n)},
                  {b16, f16}))
    add(t);
  for (Test t : {with_kv_len(with_splits(forward(b16, {2, 6, 2, 1, 339, 128}, none, n), 3), {300, 339}),
                 with_kv_len(with_splits(forward(b16, {2, 3, 1, 3, 799, 128}, bottom, n), 4), {799, 123}),
                 with_kv_len(forward(b16, {2, 2, 2, 16, 200, 128}, none, n), {1, 130})})
    add(with_rule(std::move(t), fa3_decode));
  add(with_softcap(forward(b16, {1, 2, 2, 28, 51, 64}, bottom, normal(1, 15.0 / 4)), 15));
  add(with_runs(forward(b16, {3, 3, 3, 25, 25, 64}, bottom, n), 2, true));

  const Rule combine = [](const Subject& s) {
    if (!all_close(s.got.lse, s.reference.want.lse, 1e-5, 1e-5)) return false;
    return max_error(s.got.o, s.reference.want.o) <= 2 * max_error(s.reference.unfused, s.reference.want.o) ||
           all_close(s.got.o, s.reference.unfused, 1e-5, 1e-5);
  };
  for (DType out : {DType::fp32, f16, b16}) p.merges.push_back({113, 64, DType::fp32, out, 0, 1.0 / 3, combine});
  return p;
}

}  // namespace attest::field
