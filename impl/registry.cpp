#include "impl/registry.h"

#include <vector>

#include "impl/contracts.h"
#include "impl/cpu/forward.h"
#include "impl/cpu/kernel.h"
#include "impl/cpu/state_ops.h"

namespace attn {

namespace {

using enum ContractFormat;

constexpr const char* standard_summary = "three-pass attention, the baseline";
constexpr const char* fa1_summary = "FlashAttention-1: keys outside, queries inside, O normalised at every block";
constexpr const char* fa2_summary = "FlashAttention-2: queries outside, keys inside, one division at the end";
constexpr const char* causal_summary = "FlashAttention-2 for causal masks: full tiles first, then the partial ones";
constexpr const char* decode_summary = "Flash-Decoding: split keys, merged by LSE";
constexpr const char* scan_summary = "online softmax of rows of scores: maximum m and sum l of exp(x - m)";
constexpr const char* step_summary = "one step of the online softmax: a block of scores and values into (m, l, acc)";
constexpr const char* merge_ml_summary = "merge of two states (m, l)";
constexpr const char* merge_mla_summary = "merge of two states (m, l, acc)";
constexpr const char* merge_olse_summary = "merge of two results (O, LSE), renormalised";

std::vector<attn_kernel> make_table() {
  return {
      make_kernel<Standard<Fp64>>("cpu.standard.fp64", standard_summary, preset(fp64, ATTN_ALG_STANDARD)),
      make_kernel<Standard<Fp32>>("cpu.standard.fp32", standard_summary, preset(fp32, ATTN_ALG_STANDARD)),
      make_kernel<Standard<Fp16P16>>("cpu.standard.fp16.p16", standard_summary, preset(fp16_p16, ATTN_ALG_STANDARD)),
      make_kernel<Standard<Fp16P32>>("cpu.standard.fp16.p32", standard_summary, preset(fp16_p32, ATTN_ALG_STANDARD)),
      make_kernel<Standard<Bf16P16>>("cpu.standard.bf16.p16", standard_summary, preset(bf16_p16, ATTN_ALG_STANDARD)),
      make_kernel<Standard<Bf16P32>>("cpu.standard.bf16.p32", standard_summary, preset(bf16_p32, ATTN_ALG_STANDARD)),

      make_kernel<Fa1<Fp64>>("cpu.fa1.fp64", fa1_summary, preset(fp64, ATTN_ALG_FA1)),
      make_kernel<Fa1<Fp32>>("cpu.fa1.fp32", fa1_summary, preset(fp32, ATTN_ALG_FA1)),
      make_kernel<Fa1<Fp16P16>>("cpu.fa1.fp16.p16", fa1_summary, preset(fp16_p16, ATTN_ALG_FA1)),
      make_kernel<Fa1<Fp16P32>>("cpu.fa1.fp16.p32", fa1_summary, preset(fp16_p32, ATTN_ALG_FA1)),
      make_kernel<Fa1<Bf16P16>>("cpu.fa1.bf16.p16", fa1_summary, preset(bf16_p16, ATTN_ALG_FA1)),
      make_kernel<Fa1<Bf16P32>>("cpu.fa1.bf16.p32", fa1_summary, preset(bf16_p32, ATTN_ALG_FA1)),

      make_kernel<Fa2<Fp64>>("cpu.fa2.fp64", fa2_summary, preset(fp64, ATTN_ALG_FA2)),
      make_kernel<Fa2<Fp32>>("cpu.fa2.fp32", fa2_summary, preset(fp32, ATTN_ALG_FA2)),
      make_kernel<Fa2<Fp16P16>>("cpu.fa2.fp16.p16", fa2_summary, preset(fp16_p16, ATTN_ALG_FA2)),
      make_kernel<Fa2<Fp16P32>>("cpu.fa2.fp16.p32", fa2_summary, preset(fp16_p32, ATTN_ALG_FA2)),
      make_kernel<Fa2<Bf16P16>>("cpu.fa2.bf16.p16", fa2_summary, preset(bf16_p16, ATTN_ALG_FA2)),
      make_kernel<Fa2<Bf16P32>>("cpu.fa2.bf16.p32", fa2_summary, preset(bf16_p32, ATTN_ALG_FA2)),

      make_kernel<Causal<Fp64>>("cpu.causal.fp64", causal_summary, preset(fp64, ATTN_ALG_FA2)),
      make_kernel<Causal<Fp32>>("cpu.causal.fp32", causal_summary, preset(fp32, ATTN_ALG_FA2)),
      make_kernel<Causal<Fp16P16>>("cpu.causal.fp16.p16", causal_summary, preset(fp16_p16, ATTN_ALG_FA2)),
      make_kernel<Causal<Fp16P32>>("cpu.causal.fp16.p32", causal_summary, preset(fp16_p32, ATTN_ALG_FA2)),
      make_kernel<Causal<Bf16P16>>("cpu.causal.bf16.p16", causal_summary, preset(bf16_p16, ATTN_ALG_FA2)),
      make_kernel<Causal<Bf16P32>>("cpu.causal.bf16.p32", causal_summary, preset(bf16_p32, ATTN_ALG_FA2)),

      make_kernel<Decode<Fp64>>("cpu.decode.fp64", decode_summary, preset(fp64, ATTN_ALG_SPLIT)),
      make_kernel<Decode<Fp32>>("cpu.decode.fp32", decode_summary, preset(fp32, ATTN_ALG_SPLIT)),
      make_kernel<Decode<Fp16P16>>("cpu.decode.fp16.p16", decode_summary, preset(fp16_p16, ATTN_ALG_SPLIT)),
      make_kernel<Decode<Fp16P32>>("cpu.decode.fp16.p32", decode_summary, preset(fp16_p32, ATTN_ALG_SPLIT)),
      make_kernel<Decode<Bf16P16>>("cpu.decode.bf16.p16", decode_summary, preset(bf16_p16, ATTN_ALG_SPLIT)),
      make_kernel<Decode<Bf16P32>>("cpu.decode.bf16.p32", decode_summary, preset(bf16_p32, ATTN_ALG_SPLIT)),

      make_kernel<Step<Fp64, ATTN_STATE_ML>>("cpu.scan.fp64", scan_summary, preset(fp64, ATTN_ALG_STEP)),
      make_kernel<Step<Fp32, ATTN_STATE_ML>>("cpu.scan.fp32", scan_summary, preset(fp32, ATTN_ALG_STEP)),
      make_kernel<Step<Fp64, ATTN_STATE_MLA>>("cpu.step.fp64", step_summary, preset(fp64, ATTN_ALG_STEP)),
      make_kernel<Step<Fp32, ATTN_STATE_MLA>>("cpu.step.fp32", step_summary, preset(fp32, ATTN_ALG_STEP)),
      make_kernel<Step<Fp16P16, ATTN_STATE_MLA>>("cpu.step.fp16.p16", step_summary, preset(fp16_p16, ATTN_ALG_STEP)),
      make_kernel<Step<Fp16P32, ATTN_STATE_MLA>>("cpu.step.fp16.p32", step_summary, preset(fp16_p32, ATTN_ALG_STEP)),
      make_kernel<Step<Bf16P16, ATTN_STATE_MLA>>("cpu.step.bf16.p16", step_summary, preset(bf16_p16, ATTN_ALG_STEP)),
      make_kernel<Step<Bf16P32, ATTN_STATE_MLA>>("cpu.step.bf16.p32", step_summary, preset(bf16_p32, ATTN_ALG_STEP)),

      make_kernel<Merge<Fp64, ATTN_STATE_ML>>("cpu.merge-ml.fp64", merge_ml_summary, preset(fp64, ATTN_ALG_MERGE)),
      make_kernel<Merge<Fp32, ATTN_STATE_ML>>("cpu.merge-ml.fp32", merge_ml_summary, preset(fp32, ATTN_ALG_MERGE)),
      make_kernel<Merge<Fp64, ATTN_STATE_MLA>>("cpu.merge-mla.fp64", merge_mla_summary, preset(fp64, ATTN_ALG_MERGE)),
      make_kernel<Merge<Fp32, ATTN_STATE_MLA>>("cpu.merge-mla.fp32", merge_mla_summary, preset(fp32, ATTN_ALG_MERGE)),
      make_kernel<Merge<Fp64, ATTN_STATE_OLSE>>("cpu.merge-olse.fp64", merge_olse_summary,
                                                preset(fp64, ATTN_ALG_MERGE)),
      make_kernel<Merge<Fp32, ATTN_STATE_OLSE>>("cpu.merge-olse.fp32", merge_olse_summary,
                                                preset(fp32, ATTN_ALG_MERGE)),
  };
}

}  // namespace

std::span<const attn_kernel> cpu_kernels() {
  static const std::vector<attn_kernel> table = make_table();
  return table;
}

}  // namespace attn
