// cuDNN frontend, CUTLASS FMHA, Transformer Engine.
#include <algorithm>
#include <cmath>

#include "properties/field/build.h"
#include "properties/field/rules.h"
#include "properties/field/table.h"
#include "properties/field/values.h"

namespace attest::field {
namespace {

constexpr DType f16 = DType::fp16, b16 = DType::bf16;
constexpr Causal none = Causal::none, top = Causal::top_left, bottom = Causal::bottom_right;

}  // namespace

Project cudnn_frontend() {
  Project p;
  p.name = "cuDNN frontend", p.column = "cuDNN";
  p.source =
      "NVIDIA/cudnn-frontend@3929da2e test/python/sdpa/helpers.py:8-39 (values), 209-266 (NaN margins), 346-397 "
      "(rule); fp16.py:524-675; random_config.py:190-345; test_mhas_v2.py:98-260";
  p.inputs = "whole numbers in [-2, 2], 80 % zeros; fp16 and bf16; random shapes and strides, scale 0.125 always";
  p.reference_text = "fp32";
  p.rule_text = "|x - ref| <= 2e-2 + 2e-2 |ref| for O and the statistics (LSE)";
  p.blind = "a NaN passes where the reference has one";
  p.rule = [](const Subject& s) {
    return all_close(s.got.o, s.reference.want.o, 2e-2, 2e-2, true) &&
           all_close(s.got.lse, s.reference.want.lse, 2e-2, 2e-2, true);
  };
  p.reference_after = true;
  p.sees_margins = true;
  p.stale = p.margin = 0xFF;  // every buffer is filled with NaN, margins of 512 elements included
  const Fill ints = sparse_integers(0.8, 2);
  const auto add = [&](Test t) { p.tests.push_back(with_scale(std::move(t), 0.125)); };
  // Half of the layouts have gaps, the order of the axes is random.
  const auto gaps = [](Test t) {
    for (Layout* l : {&t.problem.q_layout, &t.problem.o_layout}) l->row_padding = 8, l->head_padding = 3;
    t.problem.k_layout.head_padding = 5, t.problem.v_layout.row_padding = 16;
    return t;
  };
  for (const Test& t :
       in_formats({without_lse(forward(f16, {1, 4, 4, 60, 60, 128}, top, ints)),
                   gaps(forward(f16, {2, 4, 2, 33, 75, 64}, bottom, ints)),
                   heads_inside(with_kv_len(forward(f16, {4, 2, 1, 17, 61, 104, 48}, none, ints), {61, 1, 30, 47}))},
                  {b16, f16}))
    add(t);
  add(gaps(forward(b16, {1, 3, 3, 90, 31, 40, 72}, bottom, ints)));
  add(heads_inside(without_lse(forward(b16, {1, 8, 1, 1, 1000, 64}, none, ints))));
  add(forward(f16, {3, 2, 2, 1, 317, 128}, none, ints));
  add(gaps(heads_inside(with_kv_len(forward(b16, {2, 3, 3, 40, 40, 32}, top, ints), {13, 40}))));
  return p;
}

Project cutlass_fmha() {
  Project p;
  p.name = "CUTLASS FMHA", p.column = "CUTL";
  p.source =
      "NVIDIA/cutlass@7107b055 examples/77_blackwell_fmha/77_blackwell_fmha.cu:344-360, 531-555; "
      "reference/reference_abs_error.hpp:91-186; reference/fmha_fwd_reference.hpp; CMakeLists.txt:42-105";
  p.inputs = "N(0, 1) in fp16; 512 x 512, lengths such as 17 x 257 and 1013 x 1024, one entry without keys";
  p.reference_text = "fp32 on the device, P cast to 16 bits, O cast to 16 bits";
  p.rule_text = "max |x - ref| < 1e-2 and mean < 1e-3, for O and for LSE";
  p.blind = "fmax drops a NaN from the maximum; the mean still shows it";
  p.want = {DType::fp32, DType::any, DType::any, Arithmetic::Scale::scores, false};
  p.rule = [](const Subject& s) {
    const auto passes = [](Numbers got, Numbers want) {
      double most = 0, sum = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i] == want[i]) continue;
        most = std::fmax(std::fabs(got[i] - want[i]), most), sum += std::fabs(got[i] - want[i]);
      }
      return most < 1e-2 && sum / static_cast<double>(got.size()) < 1e-3;
    };
    return passes(s.got.o, s.reference.want.o) && passes(s.got.lse, s.reference.want.lse);
  };
  p.reference_after = true;
  const Fill n = normal();
  const auto add = [&](Test t) { p.tests.push_back(heads_inside(std::move(t))); };
  add(forward(f16, {1, 2, 2, 64, 64, 128}, none, n));
  add(forward(f16, {1, 2, 2, 64, 64, 128}, top, n));
  add(forward(f16, {1, 1, 1, 125, 128, 128}, bottom, n));
  add(forward(f16, {2, 4, 2, 48, 48, 64}, none, n));
  add(with_kv_len(forward(f16, {3, 4, 2, 22, 96, 64}, none, n), {33, 0, 96}));
  add(with_kv_len(forward(f16, {2, 2, 2, 3, 5, 64}, none, n), {2, 5}));
  add(forward(f16, {1, 4, 4, 17, 257, 128}, top, n));
  add(forward(f16, {1, 4, 4, 17, 25, 128}, bottom, n));
  add(with_kv_len(forward(f16, {2, 4, 2, 1, 512, 128}, none, n), {512, 460}));
  add(forward(f16, {1, 4, 4, 1, 1, 64}, none, n));
  return p;
}

Project transformer_engine() {
  Project p;
  p.name = "Transformer Engine", p.column = "TE";
  p.source =
      "NVIDIA/TransformerEngine@d0067d0d tests/pytorch/attention/test_attention.py:139-151 and 367-717 "
      "(configurations), 177-179 and 283-297 (rule), 1323 (values)";
  p.inputs = "0.1 N(0, 1) in fp16 and bf16; 128 to 4096 keys";
  p.reference_text = "another backend; here the unfused one, every intermediate tensor in 16 bits";
  p.rule_text = "|O - other| <= t + t |other|, t = 1e-3 (fp16), 1.5e-2 (bf16)";
  p.blind = "no LSE; bf16 zeros pass from about 1000 keys on";
  p.want = {DType::any, DType::any, DType::any, Arithmetic::Scale::scores, true};
  p.rule = [](const Subject& s) {
    const double t = s.format == b16 ? 1.5e-2 : 1e-3;
    return all_close(s.got.o, s.reference.want.o, t, t);
  };
  const Fill n = normal(0.1);
  for (const Test& t :
       in_formats({forward(f16, {2, 2, 2, 40, 40, 64}, none, n),
                   with_splits(forward(f16, {2, 2, 2, 24, 64, 64, 128}, none, n), 2),
                   forward(f16, {1, 4, 1, 48, 48, 128}, top, n), forward(f16, {1, 4, 1, 24, 64, 128}, bottom, n),
                   with_kv_len(forward(f16, {2, 3, 1, 40, 40, 64}, none, n), {17, 40}),
                   forward(f16, {1, 2, 1, 1, 2048, 128}, none, n), forward(f16, {1, 1, 1, 4, 2048, 64}, bottom, n)},
                  {b16, f16}))
    p.tests.push_back(heads_inside(t));
  return p;
}

}  // namespace attest::field
