// FlashInfer, flashinfer-bench, vLLM.
#include <algorithm>
#include <cmath>

#include "properties/field/build.h"
#include "properties/field/rules.h"
#include "properties/field/table.h"
#include "properties/field/values.h"

namespace attest::field {
namespace {

constexpr DType f16 = DType::fp16, b16 = DType::bf16;
constexpr Causal none = Causal::none, bottom = Causal::bottom_right;

bool sees_causal(std::int64_t i, std::int64_t j, std::int64_t tq, std::int64_t tk) { return j <= i + tk - tq; }

Test alone(Test t, std::int64_t entries) {
  t.alone = entries;
  return t;
}

}  // namespace

Project flashinfer() {
  Project p;
  p.name = "FlashInfer", p.column = "FI";
  p.source =
      "flashinfer-ai/flashinfer@fb28d724 tests/attention/test_single_prefill.py:69-115, 240-283; test_hopper.py:26-57; "
      "test_batch_prefill_kernels.py:48-140, 676-790; test_batch_decode_kernels.py:99-230, 1412-1456; "
      "test_batch_invariant_fa2.py:56-161; test_shared_prefix_kernels.py:233-311; test_helpers.py:117-150";
  p.inputs = "N(0, 1) in fp16; scores of -1e4 to -2.45e5 in two tests";
  p.reference_text = "a sibling kernel or torch; here fp64, O cast to 16 bits";
  p.rule_text =
      "|x - ref| <= 1e-3 + 1e-3 |ref| for O and LSE (1e-2 for O in the two tests); batch entries alone: same bits";
  p.blind = "another comparator of theirs is blind to NaN (see the next column)";
  p.want = {DType::fp64, DType::fp64, DType::any, Arithmetic::Scale::scores, true};
  p.rule = close_outputs_and_lse(1e-3, 1e-3);
  p.reference_after = true;
  const Fill n = normal();
  const Rule coarse = close_outputs(1e-2, 1e-2);
  const auto add = [&](Test t) { p.tests.push_back(heads_inside(std::move(t))); };
  add(without_lse(forward(f16, {1, 4, 1, 37, 51, 64}, none, n)));
  add(forward(f16, {1, 7, 1, 17, 54, 128}, bottom, n));
  add(without_lse(forward(f16, {1, 4, 4, 11, 11, 64}, bottom, n)));
  add(forward(f16, {1, 4, 1, 99, 99, 64}, bottom, n));
  add(with_kv_len(forward(f16, {3, 4, 1, 1, 512, 128}, none, n), {54, 512, 97}));
  add(forward(f16, {1, 2, 1, 1, 2048, 128}, none, n));
  add(without_lse(with_visible(forward(f16, {2, 4, 4, 17, 54, 128}, none, n), sees_causal)));
  add(alone(with_splits(forward(f16, {5, 2, 1, 1, 500, 64}, none, n), 2), 4));
  add(alone(with_splits(forward(f16, {3, 1, 1, 16, 200, 64}, bottom, n), 2), 2));
  for (DType format : {f16, b16}) {
    for (double level : {-1e4, -6e4, -2.45e5})
      add(with_rule(forward(format, {1, 16, 1, 1, 64, 128}, none, level_scores(level)), coarse));
    add(with_rule(forward(format, {1, 4, 1, 32, 32, 128}, bottom, rising_keys()), coarse));
    add(with_rule(forward(format, {1, 8, 1, 1, 2, 128}, none, constant(64, -64, 1)), [](const Subject& s) {
      return all_close(s.got.o, s.reference.want.o, 0, 0) && all_close(s.got.lse, s.reference.want.lse, 1e-3, 1e-5);
    }));
  }
  for (double cap : {1.0, 30.0}) add(with_softcap(forward(f16, {1, 4, 4, 1, 81, 128}, none, n), cap));
  p.merges.push_back({96, 128, f16, f16, 0, 0, close_outputs_and_lse(1e-3, 1e-3)});
  p.merges.push_back({7, 64, f16, f16, 0, 0, close_outputs_and_lse(1e-3, 1e-3)});
  return p;
}

Project flashinfer_trtllm() {
  Project p;
  p.name = "FlashInfer trtllm-gen", p.column = "FI-trt";
  p.source =
      "flashinfer-ai/flashinfer@fb28d724 tests/attention/test_trtllm_gen_attention_decode.py:1005-1034, "
      "test_trtllm_gen_attention_prefill.py:583-608, tests/test_helpers/test_helpers.py:37-80";
  p.inputs = "N(0, 1) in bf16 and fp16";
  p.reference_text = "a sibling kernel; here fp64, O cast to 16 bits";
  p.rule_text = "|O - ref| <= 1e-2 + 1e-2 |ref| but for 5e-5 of the elements";
  p.blind = "NaN (|x - ref| > t is false); no LSE";
  p.want = {DType::fp64, DType::fp64, DType::any, Arithmetic::Scale::scores, true};
  p.rule = [](const Subject& s) {
    const auto allowed = static_cast<std::int64_t>(5e-5 * static_cast<double>(s.got.o.size()));
    return exceeding(s.got.o, s.reference.want.o, 1e-2, 1e-2) <= allowed;
  };
  p.reference_after = true;
  const Fill n = normal();
  for (const Test& t :
       in_formats({with_kv_len(forward(f16, {3, 8, 1, 1, 300, 128}, none, n), {300, 110, 17}),
                   forward(f16, {1, 4, 1, 3, 500, 128}, bottom, n), forward(f16, {2, 4, 2, 30, 45, 128}, bottom, n)},
                  {b16, f16}))
    p.tests.push_back(without_lse(heads_inside(t)));
  return p;
}

Project flashinfer_bench() {
  Project p;
  p.name = "flashinfer-bench", p.column = "FIben";
  p.source =
      "flashinfer-ai/flashinfer-bench@40e6ca78 flashinfer_bench/bench/utils.py:95-121, evaluators/default.py:131-170, "
      "config.py:41-45";
  p.inputs = "N(0, 1) in bf16; grouped heads, paged decode and causal prefill";
  p.reference_text = "fp32, O cast to 16 bits";
  p.rule_text = "|x - ref| <= 1e-2 or <= 1e-2 (|ref| + 1e-8), for O and LSE; no NaN, no inf";
  p.blind = "an LSE of -inf is a failure";
  p.want = {.output = DType::any};
  p.rule = [](const Subject& s) {
    const auto passes = [](Numbers got, Numbers want) {
      if (any_nan(got) || any_infinite(got)) return false;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double error = std::fabs(got[i] - want[i]);
        if (error > 1e-2 && error / (std::fabs(want[i]) + 1e-8) > 1e-2) return false;
      }
      return true;
    };
    return passes(s.got.o, s.reference.want.o) && passes(s.got.lse, s.reference.want.lse);
  };
  const Fill n = normal();
  const auto add = [&](Test t) { p.tests.push_back(heads_inside(std::move(t))); };
  add(with_kv_len(forward(b16, {4, 8, 2, 1, 200, 128}, none, n), {34, 200, 7, 120}));
  add(forward(b16, {1, 8, 1, 31, 31, 128}, bottom, n));
  add(forward(b16, {1, 4, 1, 7, 160, 128}, bottom, n));
  return p;
}

Project vllm() {
  Project p;
  p.name = "vLLM", p.column = "vLLM";
  p.source =
      "vllm-project/vllm@0001b995 tests/kernels/attention/test_flash_attn.py:17-78, 82-92, 196-208; @073c5a87 "
      "test_merge_attn_states.py:167-187, 336-385";
  p.inputs = "N(0, 1) in bf16; decode and prefill with 18 to 2011 keys, causal; 10 % empty parts in merges";
  p.reference_text = "every intermediate tensor in bf16, q scaled first";
  p.rule_text = "|O - ref| <= 1.5e-2 + 1e-2 |ref|; merges 1e-3 + 1e-3 |ref|, LSE too";
  p.blind = "no LSE outside of merges";
  p.want = {DType::any, DType::any, DType::any, Arithmetic::Scale::q, true};
  p.rule = close_outputs(1.5e-2, 1e-2);
  p.reference_after = true;
  const Fill n = normal();
  const auto add = [&](Test t) { p.tests.push_back(without_lse(heads_inside(std::move(t)))); };
  for (std::int64_t d : {40, 128}) {
    add(forward(b16, {1, 8, 2, 5, 18, d}, bottom, n));
    add(forward(b16, {1, 4, 1, 1, 1328, d}, bottom, n));
    add(forward(b16, {1, 4, 1, 33, 116, d}, bottom, n));
    add(with_kv_len(forward(b16, {3, 4, 1, 1, 523, d}, none, n), {523, 37, 201}));
  }
  add(forward(b16, {1, 4, 1, 1, 2011, 72}, bottom, n));
  add(with_softcap(forward(b16, {1, 8, 2, 5, 18, 128}, bottom, n), 50));
  p.merges.push_back({128, 64, DType::fp32, DType::fp32, 0.1, 0.1, close_outputs_and_lse(1e-3, 1e-3)});
  p.merges.push_back({64, 128, f16, f16, 0.1, 0.1, close_outputs_and_lse(1e-3, 1e-3)});
  return p;
}

}  // namespace attest::field
