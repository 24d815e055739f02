// The Contracts that the tests of bounds simulate: formats x algorithm x arithmetic, each constant an allowance that
// the simulator really uses.
#pragma once

#include <vector>

#include "oracle/tests/bound_simulator.h"

namespace attest::bound_test {

inline attn_contract contract_of(std::int32_t algorithm, std::int32_t in, std::int32_t acc, std::int32_t p) {
  attn_contract c{};
  c.struct_size = sizeof c;
  c.algorithm = algorithm;
  c.in_dtype = in;
  c.acc_dtype = acc;
  c.p_dtype = p;
  c.qk_accumulation = c.pv_accumulation = ATTN_ACC_FMA;
  c.sum_order = ATTN_SUM_SEQUENTIAL;
  c.exp_form = ATTN_EXP_DIFFERENCE;
  c.exp_error = c.rescale_exp_error = 2;
  c.log_absolute = 0;
  c.log_relative = 2;
  c.division_error = 1;
  c.rescale = ATTN_RESCALE_ALWAYS;
  c.split_merge = algorithm == ATTN_ALG_SPLIT ? ATTN_MERGE_RENORMALISED : ATTN_MERGE_NONE;
  return c;
}

inline void use_tensor_core(attn_contract& c, int terms, int fraction_bits) {
  c.qk_accumulation = c.pv_accumulation = ATTN_ACC_TENSOR_CORE;
  c.mma_terms = terms;
  c.mma_fraction_bits = fraction_bits;
  c.exp_form = ATTN_EXP2_FMA;
  c.exp_error = c.rescale_exp_error = 5;
  c.log_absolute = 3;
  c.log_relative = 4;
}

inline std::vector<SimulatedKernel> make_setups() {
  std::vector<SimulatedKernel> all;
  const auto add = [&](const char* name, std::int32_t alg, std::int32_t in, std::int32_t acc, std::int32_t p,
                       auto change) {
    SimulatedKernel s;
    s.name = name;
    s.contract = contract_of(alg, in, acc, p);
    s.in = dtype_of(in);
    s.out = dtype_of(acc);
    change(s);
    all.push_back(s);
  };
  const auto nothing = [](SimulatedKernel&) {};
  const auto splits = [](SimulatedKernel& s) { s.splits = 4; };
  add("fp32 FA2", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32, nothing);
  add("fp32 FA2 scaled mul+add", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.contract.exp_form = ATTN_EXP_SCALED;
    s.contract.qk_accumulation = s.contract.pv_accumulation = ATTN_ACC_MUL_ADD;
  });
  add("fp32 FA2 exp2 rcp", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.contract.exp_form = ATTN_EXP2_FMA;
    s.contract.division_error = 2;
  });
  add("fp32 standard lanes", ATTN_ALG_STANDARD, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.contract.sum_order = ATTN_SUM_ANY;
    s.lanes = true;
  });
  add("fp32 FA1", ATTN_ALG_FA1, ATTN_FP32, ATTN_FP32, ATTN_FP32, nothing);
  add("fp32 FA1 two exps", ATTN_ALG_FA1, ATTN_FP32, ATTN_FP32, ATTN_FP32,
      [](SimulatedKernel& s) { s.two_exps = true; });
  add("fp32 FA1 continued sum", ATTN_ALG_FA1, ATTN_FP32, ATTN_FP32, ATTN_FP32,
      [](SimulatedKernel& s) { s.continues = true; });
  add("fp32 split", ATTN_ALG_SPLIT, ATTN_FP32, ATTN_FP32, ATTN_FP32, splits);
  add("fp32 split, cuts untold", ATTN_ALG_SPLIT, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.splits = 4;
    s.tell_cuts = false;
  });
  add("fp32 split exp2 division-free", ATTN_ALG_SPLIT, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.splits = 4;
    s.contract.exp_form = ATTN_EXP2_FMA;
    s.contract.split_merge = ATTN_MERGE_DIVISION_FREE;
  });
  // Products of 16-bit inputs are exact in fp32: what comes after the scores stands alone.
  add("bf16 FA2 P32, out fp32", ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_FP32, nothing);
  add("bf16 split division-free", ATTN_ALG_SPLIT, ATTN_BF16, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.splits = 4;
    s.contract.split_merge = ATTN_MERGE_DIVISION_FREE;
  });
  add("fp32 FA2 coarse rescale", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.contract.exp_error = 1;
    s.contract.rescale_exp_error = 60;
  });
  add("fp32 FA2 lazy", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    s.contract.rescale = ATTN_RESCALE_LAZY;
    s.contract.lazy_threshold = 8;
  });
  add("fp32 FA2 flush", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32,
      [](SimulatedKernel& s) { s.contract.flushes_subnormals = 1; });
  add("fp32 FA2 narrowed scale", ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32,
      [](SimulatedKernel& s) { s.contract.scale_narrowed = 1; });
  add("bf16 FA2 P16, out fp32", ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_BF16, nothing);
  add("bf16 FA2 P32, out bf16", ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_FP32,
      [](SimulatedKernel& s) { s.out = DType::bf16; });
  add("fp16 FA2 P16, out fp32", ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP16, nothing);
  add("fp16 FA2 P16, out fp16", ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP16,
      [](SimulatedKernel& s) { s.out = DType::fp16; });
  add("fp16 FA1 P16, out fp32", ATTN_ALG_FA1, ATTN_FP16, ATTN_FP32, ATTN_FP16, nothing);
  add("fp16 split P16, out fp32", ATTN_ALG_SPLIT, ATTN_FP16, ATTN_FP32, ATTN_FP16, splits);
  add("bf16 sm_90 P16, out fp32", ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_BF16,
      [](SimulatedKernel& s) { use_tensor_core(s.contract, 16, 25); });
  add("fp16 sm_80 P16, out fp32", ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP16,
      [](SimulatedKernel& s) { use_tensor_core(s.contract, 8, 24); });
  add("bf16 sm_90 lazy, out fp32", ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_BF16, [](SimulatedKernel& s) {
    use_tensor_core(s.contract, 16, 25);
    s.contract.rescale = ATTN_RESCALE_LAZY;
    s.contract.lazy_threshold = 8;
  });
  add("fp16 tensor core, F = 34", ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP32, [](SimulatedKernel& s) {
    use_tensor_core(s.contract, 4, 34);
    s.contract.exp_form = ATTN_EXP_DIFFERENCE;
  });
  add("fp64 FA2", ATTN_ALG_FA2, ATTN_FP64, ATTN_FP64, ATTN_FP64, nothing);
  add("fp64 FA1 scaled", ATTN_ALG_FA1, ATTN_FP64, ATTN_FP64, ATTN_FP64,
      [](SimulatedKernel& s) { s.contract.exp_form = ATTN_EXP_SCALED; });
  add("fp64 split", ATTN_ALG_SPLIT, ATTN_FP64, ATTN_FP64, ATTN_FP64, splits);
  return all;
}

}  // namespace attest::bound_test
