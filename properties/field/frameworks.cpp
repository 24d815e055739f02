// PyTorch, oneDNN, llama.cpp, xformers, JAX.
#include <algorithm>
#include <cmath>

#include "properties/field/build.h"
#include "properties/field/rules.h"
#include "properties/field/table.h"
#include "properties/field/values.h"

namespace attest::field {
namespace {

constexpr DType f32 = DType::fp32, f16 = DType::fp16, b16 = DType::bf16;
constexpr Causal none = Causal::none, top = Causal::top_left, bottom = Causal::bottom_right;

// PyTorch's mask with rows that see nothing: every fourth row, and elsewhere keys of the same residue modulo 5.
bool sees_fifth(std::int64_t i, std::int64_t j, std::int64_t, std::int64_t) { return i % 4 != 0 && i % 5 == j % 5; }

// llama.cpp masks blocks of 64 rows by 128 keys, one in ten of the area.
bool sees_but_blocks(std::int64_t i, std::int64_t j, std::int64_t, std::int64_t tk) {
  return !(j >= tk / 3 && j < tk / 3 + 128 && i % 64 >= 20) && !(i < 8 && j < 40);
}

bool sees_three_quarters(std::int64_t i, std::int64_t j, std::int64_t, std::int64_t) {
  return j == 0 || (i * 7919 + j * 104729) % 97 % 4 != 0;
}

}  // namespace

Project pytorch_sdpa() {
  Project p;
  p.name = "PyTorch SDPA", p.column = "torch";
  p.source =
      "pytorch/pytorch test/test_transformers.py, _check_equal and check_out_and_grad (fudge 5), "
      "test_flash_attention_vs_math_ref_grads @00030eb8 (shapes, values), test_fully_masked_out_rows, "
      "test_flash_atteention_large_bf16_nan_values, test_scaled_dot_product_attention_fp16_overflow; "
      "aten/src/ATen/native/transformers/attention.cpp (the maths is in fp32 for 16-bit inputs)";
  p.inputs = "uniform [0, 1) in fp16, bf16, fp32; scale 1/sqrt(d) and 1/d";
  p.reference_text = "fp32 (fp64 for fp32)";
  p.rule_text = "max |O - ref| <= max(1e-5, 5 max |maths in the same format - ref|); masked rows 5e-3 and exactly 0";
  p.blind = "no LSE; values in [0, 1) give outputs of about 0.5 whatever the weights";
  p.want = {DType::fp64, DType::fp64, f32, Arithmetic::Scale::scores, true};
  p.unfused = {f32, f32, DType::any, Arithmetic::Scale::scores, true};
  p.rule = [](const Subject& s) {
    const double error = max_error(s.got.o, s.reference.want.o);
    return !std::isnan(error) && error <= std::max(1e-5, 5 * max_error(s.reference.unfused, s.reference.want.o));
  };
  const Fill unit = uniform(0, 1);
  for (const Test& t :
       in_formats({forward(f16, {2, 2, 2, 36, 36, 64}, top, unit), forward(f16, {1, 4, 4, 36, 147, 32}, none, unit),
                   with_scale(forward(f16, {1, 2, 2, 64, 32, 96}, none, unit), 1.0 / 96),
                   forward(f16, {2, 4, 4, 4, 8, 72}, none, unit), forward(f16, {1, 2, 2, 8, 587, 128}, none, unit),
                   with_rule(with_visible(forward(f16, {1, 1, 1, 48, 48, 64}, none, unit), sees_fifth),
                             [](const Subject& s) {
                               if (!all_close(s.got.o, s.reference.want.o, 5e-3, 0)) return false;
                               for (std::size_t i = 0; i < s.got.o.size(); ++i)
                                 if (s.reference.magnitude[i] == 0 && s.got.o[i] != 0) return false;
                               return true;
                             })},
                  {f16, b16, f32}))
    p.tests.push_back(t);
  const Rule no_nan = [](const Subject& s) { return !any_nan(s.got.o); };
  p.tests.push_back(with_rule(forward(b16, {1, 1, 1, 1, 1, 64}, none, constant(133120, 133120, 133120)), no_nan));
  p.tests.push_back(with_rule(forward(f16, {1, 4, 4, 23, 23, 80}, none, constant(256, 256, 256)), no_nan));
  return p;
}

Project onednn() {
  Project p;
  p.name = "oneDNN benchdnn", p.column = "oneDNN";
  p.source =
      "uxlfoundation/oneDNN@3f27bec2 tests/benchdnn/sdpa/sdpa.cpp:263-307, cfg.cpp, utils/compare.cpp, "
      "inputs/sdpa/shapes_basic, shapes_transformer, test_sdpa_ci";
  p.inputs = "whole numbers in [-2, 2] (q in bf16: [-4, 4])";
  p.reference_text = "fp32, cast to the format of O";
  p.rule_text = "per element: relative error (absolute below 1e-5) <= 8 (1 + keys) eps, or error <= eps sum p|v|";
  p.blind =
      "the first arm is above 1 from 127 keys on in fp16, 15 in bf16; more than 90 % zeros are mistrusted, not failed";
  p.want = {.output = DType::any};
  p.rule = [](const Subject& s) {
    const double eps = epsilon(s.format), threshold = 8 * (1 + static_cast<double>(s.keys)) * eps;
    for (std::size_t i = 0; i < s.got.o.size(); ++i) {
      const double want = s.reference.want.o[i], error = std::fabs(s.got.o[i] - want);
      const bool relative = std::fabs(want) > 1e-5;
      const bool both_nan = std::isnan(s.got.o[i]) && std::isnan(want) && s.format == f16;
      if (!(error == 0 || (relative ? error / std::fabs(want) : error) <= threshold || both_nan ||
            error <= eps * s.reference.magnitude[i]))
        return false;
    }
    return true;
  };
  const auto add = [&](Dims d, Causal causal) {
    p.tests.push_back(without_lse(forward(f16, d, causal, integers(2, 2))));
    p.tests.push_back(without_lse(forward(b16, d, causal, integers(4, 2))));
  };
  add({1, 1, 1, 4, 4, 8}, none);
  add({1, 2, 2, 8, 8, 16}, top);
  add({2, 4, 4, 16, 16, 32}, bottom);
  add({1, 8, 8, 32, 32, 64}, top);
  add({1, 8, 8, 32, 32, 64}, none);
  add({1, 2, 2, 48, 96, 64}, none);
  add({1, 4, 1, 1, 385, 128}, none);
  add({1, 1, 1, 48, 96, 128, 64}, none);
  return p;
}

Project llama_cpp() {
  Project p;
  p.name = "llama.cpp", p.column = "ggml";
  p.source =
      "ggml-org/llama.cpp@0054f928 tests/test-backend-ops.cpp: init_tensor_uniform, init_tensor_kq_mask, nmse, "
      "test_case::eval, test_flash_attn_ext (max_nmse_err)";
  p.inputs = "uniform [-1, 1), K and V in fp16; blocks of -inf in the mask (their finite mask values are left out)";
  p.reference_text = "their CPU kernel; here fp32";
  p.rule_text = "sum (O - ref)^2 / sum O^2 <= 5e-4 over the whole tensor; no NaN; infinities must agree";
  p.blind = "errors of a few elements or rows; no LSE";
  p.rule = [](const Subject& s) {
    const auto& want = s.reference.want.o;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (std::isnan(s.got.o[i]) || std::isinf(s.got.o[i]) != std::isinf(want[i])) return false;
    return !(normalised_square_error(s.got.o, want) > 5e-4);
  };
  p.sees_margins = true;
  const Fill u = uniform(-1, 1);
  const auto add = [&](Test t) {
    t.problem.out = OutDType::accumulator;
    p.tests.push_back(without_lse(std::move(t)));
  };
  add(forward(f16, {1, 4, 4, 3, 113, 64}, none, u));
  add(with_additive(forward(f16, {1, 4, 4, 35, 113, 64}, none, u), sees_but_blocks));
  add(with_additive(forward(f16, {1, 4, 1, 75, 113, 128}, none, u), sees_but_blocks));
  add(heads_inside(with_additive(forward(f16, {1, 4, 1, 3, 512, 128}, none, u), sees_but_blocks)));
  add(forward(f16, {1, 4, 1, 1, 1024, 80}, none, u));
  add(with_softcap(forward(f16, {1, 4, 4, 3, 113, 64}, none, u), 10));
  add(with_additive(forward(f16, {1, 2, 2, 32, 113, 40}, none, u), sees_but_blocks));
  return p;
}

Project xformers() {
  Project p;
  p.name = "xformers", p.column = "xform";
  p.source =
      "facebookresearch/xformers@ca6d2aa0 tests/test_mem_eff_attention.py:143-210 (shapes), 367-432 (values), 499-611 "
      "(rule), 626-694 (LSE); test_fmha_merge_attentions.py:490-510; tolerances of AttentionFwOpBase";
  p.inputs = "N(0, 1) in fp32, fp16, bf16; memory after the sequence is NaN in a second run";
  p.reference_text = "fp32";
  p.rule_text =
      "|O - ref| <= a + r |ref|, (a, r) = (3e-4, 2e-5) fp32, (4e-3, 4e-4) fp16, (2e-2, 5e-3) bf16; two runs the "
      "same bits; LSE 2e-4";
  p.blind = "q > k under a bottom-right mask is rewritten away: no masked rows";
  p.rule = [](const Subject& s) {
    const double a = s.format == f32 ? 3e-4 : s.format == f16 ? 4e-3 : 2e-2;
    const double r = s.format == f32 ? 2e-5 : s.format == f16 ? 4e-4 : 5e-3;
    return !any_nan(s.got.o) && all_close(s.got.o, s.reference.want.o, a, r);
  };
  p.reference_after = true;
  p.margin = 0xFF;
  const Fill n = normal();
  const Rule lse = [](const Subject& s) { return all_close(s.got.lse, s.reference.want.lse, 2e-4, 1e-5); };
  const auto add = [&](const Test& t) {
    p.tests.push_back(without_lse(with_runs(heads_inside(t), 2, true)));
    p.tests.push_back(with_rule(heads_inside(t), lse));
  };
  const auto padded = [](Test t) {
    for (Layout* l : {&t.problem.q_layout, &t.problem.k_layout, &t.problem.v_layout}) l->head_padding = 17;
    return t;
  };
  for (const Test& t : in_formats(
           {padded(forward(f32, {1, 3, 3, 31, 67, 64}, none, n)), padded(forward(f32, {2, 1, 1, 35, 15, 32}, top, n)),
            with_kv_len(forward(f32, {3, 2, 2, 23, 60, 34}, none, n), {60, 3, 31}),
            forward(f32, {1, 1, 1, 17, 34, 128}, bottom, n), forward(f32, {1, 1, 1, 16, 256, 32, 36}, none, n)},
           {f32, f16, b16}))
    add(t);
  add(forward(f16, {1, 5, 1, 1, 512, 128}, none, n));
  p.merges.push_back({137, 128, f32, f32, 0, 0, close_outputs_and_lse(1e-4, 1e-4)});
  return p;
}

Project jax_splash() {
  Project p;
  p.name = "JAX splash", p.column = "splash";
  p.source =
      "jax-ml/jax@cec06d11 tests/pallas/tpu_splash_attention_kernel_test.py:140-152 (masks), 201-240 (shapes), "
      "428-505 (rule)";
  p.inputs = "uniform [0, 1) in fp32 and bf16, scale 1; causal and random masks, every row sees key 0";
  p.reference_text = "fp32";
  p.rule_text = "|O - ref| <= 3e-3 + 3e-3 |ref|, LSE 1e-3 + 1e-3 |ref|";
  p.blind = "a NaN passes where the reference has one; rows are never empty; lengths are multiples of 1024";
  p.rule = [](const Subject& s) {
    return all_close(s.got.o, s.reference.want.o, 3e-3, 3e-3, true) &&
           all_close(s.got.lse, s.reference.want.lse, 1e-3, 1e-3, true);
  };
  const Fill unit = uniform(0, 1);
  const auto add = [&](Test t) { p.tests.push_back(with_scale(std::move(t), 1)); };
  for (const Test& t :
       in_formats({forward(f32, {1, 4, 2, 32, 64, 64}, none, unit), forward(f32, {1, 4, 1, 64, 64, 64}, top, unit),
                   with_visible(forward(f32, {1, 2, 2, 32, 64, 128, 192}, none, unit), sees_three_quarters),
                   forward(f32, {1, 1, 1, 8, 1024, 128}, none, unit)},
                  {f32, b16}))
    add(t), add(without_lse(t));
  add(with_softcap(forward(f32, {1, 1, 1, 16, 64, 64}, none, unit), 5));
  return p;
}

}  // namespace attest::field
