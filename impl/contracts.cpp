#include "impl/contracts.h"

#include <array>
#include <cstring>
#include <string_view>

#include "impl/cpu/forward_problem.h"
#include "impl/registry.h"

namespace attn {

namespace {

// What computes: plain IEEE operations, or the special functions and matrix instructions of a CUDA device.
enum class Unit { ieee, exp2, tensor };

struct FormatRow {
  std::string_view name;
  std::int32_t storage, accumulator, weight;
  Unit unit;
};
constexpr std::array<FormatRow, 9> format_rows = {{
    {"fp64", ATTN_FP64, ATTN_FP64, ATTN_FP64, Unit::ieee},
    {"fp32", ATTN_FP32, ATTN_FP32, ATTN_FP32, Unit::ieee},
    {"fp16.p16", ATTN_FP16, ATTN_FP32, ATTN_FP16, Unit::ieee},
    {"fp16.p32", ATTN_FP16, ATTN_FP32, ATTN_FP32, Unit::ieee},
    {"bf16.p16", ATTN_BF16, ATTN_FP32, ATTN_BF16, Unit::ieee},
    {"bf16.p32", ATTN_BF16, ATTN_FP32, ATTN_FP32, Unit::ieee},
    {"fp32.exp2", ATTN_FP32, ATTN_FP32, ATTN_FP32, Unit::exp2},
    {"fp16.tensor", ATTN_FP16, ATTN_FP32, ATTN_FP16, Unit::tensor},
    {"bf16.tensor", ATTN_BF16, ATTN_FP32, ATTN_BF16, Unit::tensor},
}};
constexpr std::array<const char*, 6> algorithm_names = {"standard", "fa1", "fa2", "split", "step", "merge"};

// Errors of exp. fp32: the maximum over every float in [-inf, 0] is 1.409173: a bound. fp64: the bound derived in
// impl/core/exp.h; the largest that was seen is 1.386.
constexpr double exp_fp32_error = 1.40918;
constexpr double exp_fp64_error = 1.47;

constexpr const char* sources_fp32 =
    "exp_error, rescale_exp_error: exhaustive sweep of impl/core/exp.h over all negative fp32 values against glibc's "
    "fp64 "
    "exp: 1.409173 (impl/tests/full_test.cpp). log_relative: glibc's fp64 log (below 0.52 ulp, "
    "sysdeps/ieee754/dbl-64/e_log.c) rounded once to fp32. division_error: IEEE 754 division. qk, pv: one fused "
    "multiply-add per term. workspace: layout in impl/cpu/query_block.h.";
constexpr const char* sources_fp64 =
    "exp_error, rescale_exp_error: derived in impl/core/exp.h; against MPFR at over 2 million arguments, reduction "
    "edges "
    "included, at most 1.39 (impl/tests/full_test.cpp). log_relative: glibc's log, below 0.52 ulp = 1.04 u "
    "(sysdeps/ieee754/dbl-64/e_log.c). division_error: IEEE 754 division. qk, pv: one fused multiply-add per term. "
    "workspace: layout in impl/cpu/query_block.h.";

// sm_90, each measured over all 2^32 inputs.
constexpr double ex2_error = 2.44683, expf_error = 2.5579, logf_error = 1.3462;
constexpr const char* sources_device =
    "exp_error, rescale_exp_error: ex2.approx.ftz.f32 over all 2^32 inputs on sm_90: 2.446822 (documented: 5). "
    "log_relative: logf over all 2^32 inputs: 1.3461 (documented: 1 ulp). division_error: 1/x correctly rounded on all "
    "2^32 inputs, then a product. mma_terms, mma_fraction_bits: the accumulation model of the matrix instructions "
    "(sm_90 and later: 16 and 25, sm_80: 8 and 24; Khattak and Mikaitis, arXiv 2512.07004), which billions of results "
    "on sm_90 match bit for bit. flushes_subnormals: ex2.approx.ftz.";

constexpr const char* sources_device_states =
    "exp_error of a step: expf over all 2^32 inputs on sm_90, 2.5578 (documented: 2 ulp), and where the parts of a row "
    "are "
    "merged one exp_of and a product. rescale_exp_error, exp_error of a merge: exhaustive sweep of impl/core/exp.h, "
    "1.409173. log_relative: logf over all 2^32 inputs, 1.3461 (documented: 1 ulp). division_error: IEEE 754 division.";

constexpr std::uint64_t always = ATTN_PROMISE_DETERMINISTIC | ATTN_PROMISE_ROW_ISOLATED | ATTN_PROMISE_BATCH_INVARIANT |
                                 ATTN_PROMISE_LAYOUT_INVARIANT;

attn_contract make(const FormatRow& format, std::int32_t algorithm, const char* name) {
  const bool fp64 = format.accumulator == ATTN_FP64;
  const bool forward = algorithm <= ATTN_ALG_SPLIT;
  const bool device = format.unit != Unit::ieee;
  const double value_bytes = fp64 ? 8 : 4;
  attn_contract c{};
  c.struct_size = sizeof(attn_contract);
  c.algorithm = algorithm;
  c.preset = name;
  c.in_dtype = format.storage;
  c.acc_dtype = format.accumulator;
  c.p_dtype = format.weight;
  c.qk_accumulation = c.pv_accumulation = ATTN_ACC_FMA;
  c.sum_order = ATTN_SUM_SEQUENTIAL;
  c.exp_form = ATTN_EXP_DIFFERENCE;
  c.exp_error = c.rescale_exp_error = fp64 ? exp_fp64_error : exp_fp32_error;
  c.log_relative = fp64 ? 1.04 : 1.0000001;
  c.division_error = 1;
  c.scale_narrowed = forward && !fp64;
  c.rescale = ATTN_RESCALE_ALWAYS;
  c.split_merge = ATTN_MERGE_NONE;
  c.lse_base = ATTN_LSE_BASE_E;
  c.empty_lse = ATTN_EMPTY_LSE_NEG_INF;
  c.isolates_nonfinite = ATTN_ISOLATES_ROW;
  c.promises = always;
  c.sources = fp64 ? sources_fp64 : sources_fp32;
  if (device && forward) {
    c.sum_order = ATTN_SUM_ANY;
    c.exp_form = ATTN_EXP2_FMA;
    c.exp_error = c.rescale_exp_error = ex2_error;
    c.division_error = 2;
    c.flushes_subnormals = 1;
    c.isolates_nonfinite = ATTN_ISOLATES_HEAD;
    c.sources = sources_device;
  }
  if (device && !forward) {
    // Weights by expf(x - m); what is rescaled or merged by exp_of. A part of a row is both, and a product.
    if (algorithm == ATTN_ALG_STEP) {
      c.sum_order = ATTN_SUM_ANY;
      c.exp_error = expf_error + exp_fp32_error + 1;
    }
    c.sources = sources_device_states;
  }
  if (device) c.log_relative = logf_error;
  if (format.unit == Unit::tensor && forward) {
    c.qk_accumulation = c.pv_accumulation = ATTN_ACC_TENSOR_CORE;
    c.mma_terms = 16;
    c.mma_fraction_bits = 25;
  }
  if (forward) {
    c.promises |= ATTN_PROMISE_HEAD_PACKING_INVARIANT;
    c.default_block_q = default_block_q;
    c.default_block_k = default_block_k;
    c.max_splits = 1;
    c.workspace_per_thread = value_bytes;
  }
  switch (algorithm) {
    case ATTN_ALG_STANDARD:
      c.promises |= ATTN_PROMISE_TILING_INVARIANT;
      break;
    case ATTN_ALG_FA1:
      c.workspace_fixed = 3 * 64;  // each of m, l, O starts on its own cache line
      c.workspace_per_row = 2 * value_bytes;
      c.workspace_per_value = value_bytes;
      break;
    case ATTN_ALG_SPLIT:
      c.split_merge = ATTN_MERGE_RENORMALISED;
      c.max_splits = default_most_splits;
      c.workspace_fixed = 64;
      c.workspace_per_split = value_bytes;
      break;
    case ATTN_ALG_MERGE:
      c.split_merge = ATTN_MERGE_RENORMALISED;
      c.pv_accumulation = ATTN_ACC_MUL_ADD;
      c.promises |= ATTN_PROMISE_COMMUTATIVE_MERGE;
      break;
    default:
      break;
  }
  return c;
}

// Name "format.algorithm", kept for the life of the program.
struct Table {
  static constexpr std::size_t count = format_rows.size() * algorithm_names.size();
  std::array<std::array<char, 24>, count> names{};
  std::array<attn_contract, count> contracts{};

  Table() {
    std::size_t at = 0;
    for (const FormatRow& format : format_rows)
      for (std::size_t a = 0; a < algorithm_names.size(); ++a, ++at) {
        char* name = names[at].data();
        std::memcpy(name, format.name.data(), format.name.size());
        name[format.name.size()] = '.';
        std::strcpy(name + format.name.size() + 1, algorithm_names[a]);
        contracts[at] = make(format, static_cast<std::int32_t>(a) + ATTN_ALG_STANDARD, name);
      }
  }
};

const Table& table() {
  static const Table t;
  return t;
}

}  // namespace

const attn_contract& preset(ContractFormat format, std::int32_t algorithm) {
  const std::size_t row = static_cast<std::size_t>(format) * algorithm_names.size();
  return table().contracts[row + static_cast<std::size_t>(algorithm - ATTN_ALG_STANDARD)];
}

std::span<const attn_contract> presets() { return table().contracts; }

const attn_contract* find_preset(const char* name) {
  if (!name) return nullptr;
  for (const attn_contract& c : presets())
    if (std::string_view(c.preset) == name) return &c;
  return nullptr;
}

}  // namespace attn
