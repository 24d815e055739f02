// The CUDA kernels of the registry. Plain C++: they are listed on machines without CUDA too.
#include <vector>

#include "impl/contracts.h"
#include "impl/cuda/functions.h"
#include "impl/cuda/probe.h"
#include "impl/cuda/tiling.h"
#include "impl/registry.h"

namespace attn {

namespace {

using enum ContractFormat;

struct Format {
  CudaFormat kernel;
  ContractFormat contract;
};
constexpr Format single = {CudaFormat::fp32, fp32_exp2}, half = {CudaFormat::fp16, fp16_tensor},
                 bfloat = {CudaFormat::bf16, bf16_tensor};

attn_kernel row(const char* name, const char* summary, std::int32_t op, const KernelEntry& entry,
                const attn_contract& contract) {
  return {sizeof(attn_kernel), op, name, summary, contract, entry.supports, entry.workspace_size, entry.run,
          ATTN_DEVICE_CUDA,    0};
}

// A preset with the tiles of the kernel, and the matrix instructions of the device at hand.
attn_contract forward_contract(const Format& format, std::int32_t algorithm, const CudaTiles& tiles) {
  attn_contract c = preset(format.contract, algorithm);
  c.default_block_q = tiles.block_q;
  c.default_block_k = tiles.block_k;
  c.workspace_per_thread = 0;
  if (c.workspace_fixed > 0) c.workspace_fixed = 2 * cuda_alignment;
  if (tiles.workspace > 0) c.workspace_fixed = static_cast<double>(tiles.workspace);
  if (algorithm == ATTN_ALG_SPLIT) c.max_splits = cuda_most_splits;
  if (c.qk_accumulation == ATTN_ACC_TENSOR_CORE && cuda_device().major == 8) {
    c.mma_terms = 8;
    c.mma_fraction_bits = 24;
  }
  return c;
}

// Rows of scores are scanned in parts, whose (m, l) lie in the workspace until they are merged.
attn_contract step_contract(const Format& format) {
  attn_contract c = preset(format.contract, ATTN_ALG_STEP);
  c.max_splits = cuda_most_scan_parts;
  c.workspace_fixed = cuda_alignment;
  c.workspace_per_split = 4;
  return c;
}

std::vector<attn_kernel> make_table() {
  constexpr const char* fa1 = "FlashAttention-1 on CUDA: keys outside, queries inside, O normalised at every block";
  constexpr const char* fa2 = "FlashAttention-2 on CUDA: queries outside, keys inside, one division at the end";
  constexpr const char* causal = "FlashAttention-2 on CUDA for causal masks, longest rows first";
  constexpr const char* decode = "Flash-Decoding on CUDA: split keys, grouped heads in one tile, merged by LSE";
  constexpr const char* hopper = "FlashAttention-2 for sm_90a: wgmma and TMA, warp-specialised";
  constexpr const char* scan = "online softmax of rows of scores on CUDA: maximum m and sum l of exp(x - m)";
  constexpr const char* step = "one step of the online softmax on CUDA: scores and values into (m, l, acc)";
  constexpr const char* merge_ml = "merge of two states (m, l) on CUDA";
  constexpr const char* merge_mla = "merge of two states (m, l, acc) on CUDA";
  constexpr const char* merge_olse = "merge of two results (O, LSE) on CUDA, renormalised";

  std::vector<attn_kernel> table;
  const auto forward = [&](const char* name, const char* summary, const KernelEntry& entry, const Format& format,
                           std::int32_t algorithm, const CudaTiles& tiles) {
    table.push_back(row(name, summary, ATTN_OP_FORWARD, entry, forward_contract(format, algorithm, tiles)));
  };
  forward("cuda.fa1.fp32", fa1, cuda_fa1(single.kernel), single, ATTN_ALG_FA1, cuda_simt_tiles);
  forward("cuda.fa1.fp16.p16", fa1, cuda_fa1(half.kernel), half, ATTN_ALG_FA1, cuda_mma_tiles);
  forward("cuda.fa1.bf16.p16", fa1, cuda_fa1(bfloat.kernel), bfloat, ATTN_ALG_FA1, cuda_mma_tiles);
  forward("cuda.fa2.fp32", fa2, cuda_fa2(single.kernel), single, ATTN_ALG_FA2, cuda_simt_tiles);
  forward("cuda.fa2.fp16.p16", fa2, cuda_fa2(half.kernel), half, ATTN_ALG_FA2, cuda_mma_tiles);
  forward("cuda.fa2.bf16.p16", fa2, cuda_fa2(bfloat.kernel), bfloat, ATTN_ALG_FA2, cuda_mma_tiles);
  forward("cuda.causal.fp32", causal, cuda_causal(single.kernel), single, ATTN_ALG_FA2, cuda_simt_tiles);
  forward("cuda.causal.fp16.p16", causal, cuda_causal(half.kernel), half, ATTN_ALG_FA2, cuda_mma_tiles);
  forward("cuda.causal.bf16.p16", causal, cuda_causal(bfloat.kernel), bfloat, ATTN_ALG_FA2, cuda_mma_tiles);
  forward("cuda.decode.fp32", decode, cuda_decode(single.kernel), single, ATTN_ALG_SPLIT, cuda_simt_tiles);
  forward("cuda.decode.fp16.p16", decode, cuda_decode(half.kernel), half, ATTN_ALG_SPLIT, cuda_decode_tiles);
  forward("cuda.decode.bf16.p16", decode, cuda_decode(bfloat.kernel), bfloat, ATTN_ALG_SPLIT, cuda_decode_tiles);
  forward("cuda.fa2-sm90.fp16.p16", hopper, cuda_hopper(half.kernel), half, ATTN_ALG_FA2, cuda_hopper_tiles);
  forward("cuda.fa2-sm90.bf16.p16", hopper, cuda_hopper(bfloat.kernel), bfloat, ATTN_ALG_FA2, cuda_hopper_tiles);

  table.push_back(row("cuda.scan.fp32", scan, ATTN_OP_STEP, cuda_scan(), step_contract(single)));
  table.push_back(row("cuda.step.fp32", step, ATTN_OP_STEP, cuda_step(CudaFormat::fp32), step_contract(single)));
  table.push_back(row("cuda.step.fp16.p16", step, ATTN_OP_STEP, cuda_step(CudaFormat::fp16), step_contract(half)));
  table.push_back(row("cuda.step.bf16.p16", step, ATTN_OP_STEP, cuda_step(CudaFormat::bf16), step_contract(bfloat)));
  const attn_contract& merge = preset(fp32_exp2, ATTN_ALG_MERGE);
  table.push_back(row("cuda.merge-ml.fp32", merge_ml, ATTN_OP_MERGE, cuda_merge(ATTN_STATE_ML), merge));
  table.push_back(row("cuda.merge-mla.fp32", merge_mla, ATTN_OP_MERGE, cuda_merge(ATTN_STATE_MLA), merge));
  table.push_back(row("cuda.merge-olse.fp32", merge_olse, ATTN_OP_MERGE, cuda_merge(ATTN_STATE_OLSE), merge));
  return table;
}

}  // namespace

std::span<const attn_kernel> cuda_kernels() {
  static const std::vector<attn_kernel> table = make_table();
  return table;
}

}  // namespace attn
