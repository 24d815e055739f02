// Contracts as data: their fields by name, their ranges, and how a custom one compares with the presets.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "impl/registry.h"
#include "properties/plugin.h"

namespace attest {
namespace {

struct Enumerator {
  int value;
  std::string_view name;
};
using Enumeration = std::vector<Enumerator>;

const Enumeration dtypes = {{ATTN_FP64, "fp64"}, {ATTN_FP32, "fp32"}, {ATTN_FP16, "fp16"}, {ATTN_BF16, "bf16"}};
const Enumeration algorithms = {{ATTN_ALG_STANDARD, "standard"}, {ATTN_ALG_FA1, "fa1"},   {ATTN_ALG_FA2, "fa2"},
                                {ATTN_ALG_SPLIT, "split"},       {ATTN_ALG_STEP, "step"}, {ATTN_ALG_MERGE, "merge"}};
const Enumeration accumulations = {
    {ATTN_ACC_FMA, "fma"}, {ATTN_ACC_MUL_ADD, "mul-add"}, {ATTN_ACC_TENSOR_CORE, "tensor-core"}};
const Enumeration orders = {{ATTN_SUM_SEQUENTIAL, "sequential"}, {ATTN_SUM_ANY, "any"}};
const Enumeration exp_forms = {
    {ATTN_EXP_DIFFERENCE, "difference"}, {ATTN_EXP_SCALED, "scaled"}, {ATTN_EXP2_FMA, "exp2-fma"}};
const Enumeration rescales = {{ATTN_RESCALE_ALWAYS, "always"}, {ATTN_RESCALE_LAZY, "lazy"}};
const Enumeration merges = {
    {ATTN_MERGE_NONE, "none"}, {ATTN_MERGE_RENORMALISED, "renormalised"}, {ATTN_MERGE_DIVISION_FREE, "division-free"}};
const Enumeration bases = {{ATTN_LSE_BASE_E, "e"}, {ATTN_LSE_BASE_2, "2"}};
const Enumeration empties = {{ATTN_EMPTY_LSE_NEG_INF, "-inf"}, {ATTN_EMPTY_LSE_POS_INF, "+inf"}};
const Enumeration isolations = {{ATTN_ISOLATES_HEAD, "head"}, {ATTN_ISOLATES_ROW, "row"}};
const Enumeration flags = {{0, "no"}, {1, "yes"}};

constexpr std::uint64_t known_promises = ATTN_PROMISE_DETERMINISTIC | ATTN_PROMISE_ROW_ISOLATED |
                                         ATTN_PROMISE_BATCH_INVARIANT | ATTN_PROMISE_LAYOUT_INVARIANT |
                                         ATTN_PROMISE_HEAD_PACKING_INVARIANT | ATTN_PROMISE_TILING_INVARIANT |
                                         ATTN_PROMISE_COMMUTATIVE_MERGE;

// A field of a Contract: how to read it, what it may hold. Enumerations hold one of their values; numbers lie in
// [lo, hi]. One table serves listings, hashes, comparison and validation, so that none of them forgets a field.
struct Field {
  std::string_view name;
  double (*get)(const attn_contract&);
  const Enumeration* values;
  double lo, hi;
  std::string_view meaning;
};

template <auto member>
double get(const attn_contract& c) {
  return static_cast<double>(c.*member);
}

// clang-format off
const Field fields[] = {
    {"algorithm", get<&attn_contract::algorithm>, &algorithms, 0, 0, "order of the work"},
    {"in_dtype", get<&attn_contract::in_dtype>, &dtypes, 0, 0, "format of q, k, v"},
    {"acc_dtype", get<&attn_contract::acc_dtype>, &dtypes, 0, 0, "format of scores, sums, LSE and states"},
    {"p_dtype", get<&attn_contract::p_dtype>, &dtypes, 0, 0, "P is rounded to this before P.V"},
    {"qk_accumulation", get<&attn_contract::qk_accumulation>, &accumulations, 0, 0, "how q.k is summed"},
    {"pv_accumulation", get<&attn_contract::pv_accumulation>, &accumulations, 0, 0, "how P.V is summed"},
    {"sum_order", get<&attn_contract::sum_order>, &orders, 0, 0, "order of sums over keys"},
    {"mma_terms", get<&attn_contract::mma_terms>, nullptr, 0, 1024, "products per tensor-core instruction"},
    {"mma_fraction_bits", get<&attn_contract::mma_fraction_bits>, nullptr, 0, 64, "fraction bits that aligned products keep"},
    {"exp_form", get<&attn_contract::exp_form>, &exp_forms, 0, 0, "argument of exp"},
    {"exp_error", get<&attn_contract::exp_error>, nullptr, 0, 1 << 20, "relative error of exp, in u"},
    {"rescale_exp_error", get<&attn_contract::rescale_exp_error>, nullptr, 0, 1 << 20, "relative error of the rescale factor's exp, in u"},
    {"log_absolute", get<&attn_contract::log_absolute>, nullptr, 0, 1 << 20, "absolute error of log(l), in u"},
    {"log_relative", get<&attn_contract::log_relative>, nullptr, 0, 1 << 20, "relative error of log(l), in u"},
    {"division_error", get<&attn_contract::division_error>, nullptr, 0, 1 << 20, "relative error of the final a / l, in u"},
    {"flushes_subnormals", get<&attn_contract::flushes_subnormals>, &flags, 0, 0, "results below the normal range become 0"},
    {"scale_narrowed", get<&attn_contract::scale_narrowed>, &flags, 0, 0, "scale is rounded to the accumulator format"},
    {"rescale", get<&attn_contract::rescale>, &rescales, 0, 0, "when O is rescaled"},
    {"lazy_threshold", get<&attn_contract::lazy_threshold>, nullptr, 0, 126, "rise of the maximum that forces a rescale, in log2 units"},
    {"split_merge", get<&attn_contract::split_merge>, &merges, 0, 0, "how splits are merged"},
    {"lse_base", get<&attn_contract::lse_base>, &bases, 0, 0, "base of LSE"},
    {"empty_lse", get<&attn_contract::empty_lse>, &empties, 0, 0, "LSE of a row without keys"},
    {"isolates_nonfinite", get<&attn_contract::isolates_nonfinite>, &isolations, 0, 0, "how far a NaN or inf at a key reaches"},
    {"default_block_q", get<&attn_contract::default_block_q>, nullptr, 0, 0x1p40, "rows of a block where the problem leaves them open"},
    {"default_block_k", get<&attn_contract::default_block_k>, nullptr, 0, 0x1p40, "keys of a block where the problem leaves them open"},
    {"max_splits", get<&attn_contract::max_splits>, nullptr, 0, 0x1p40, "most splits where the problem leaves them open"},
    {"workspace_fixed", get<&attn_contract::workspace_fixed>, nullptr, 0, 0x1p40, "bytes"},
    {"workspace_per_row", get<&attn_contract::workspace_per_row>, nullptr, 0, 0x1p20, "bytes per row"},
    {"workspace_per_value", get<&attn_contract::workspace_per_value>, nullptr, 0, 0x1p20, "bytes per row and value column"},
    {"workspace_per_split", get<&attn_contract::workspace_per_split>, nullptr, 0, 0x1p20, "bytes per split, row and value column"},
    {"workspace_per_thread", get<&attn_contract::workspace_per_thread>, nullptr, 0, 0x1p20, "bytes per thread, tile row and column"},
};
// clang-format on

std::string shortest(double x) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, x).ptr;
  return std::string(text, end);
}

std::string value_text(const Field& f, double x) {
  if (f.values)
    for (const Enumerator& e : *f.values)
      if (e.value == x) return std::string(e.name);
  return shortest(x);
}

bool same_kind(const attn_contract& a, const attn_contract& b) {
  return a.algorithm == b.algorithm && a.in_dtype == b.in_dtype && a.acc_dtype == b.acc_dtype;
}

bool same_constants(const attn_contract& a, const attn_contract& b) {
  return a.promises == b.promises &&
         std::all_of(std::begin(fields), std::end(fields), [&](const Field& f) { return f.get(a) == f.get(b); });
}

// Roundings that one product and its addition cost, in u: what the accumulation model adds to a bound per term.
double rounding_cost(const attn_contract& c, std::int32_t accumulation) {
  if (accumulation == ATTN_ACC_FMA) return 1;
  if (accumulation == ATTN_ACC_MUL_ADD) return 2;
  const double precision = c.acc_dtype == ATTN_FP64 ? 53 : 24;  // u = 2^-precision
  return 1 + std::ldexp(1.0, static_cast<int>(precision) - c.mma_fraction_bits);
}

// How many times looser: the largest ratio of any one constant, because a bound is a sum in which any one of them may
// dominate; a mean would let one absurd constant hide behind exact others. Each constant counts with the one rounding
// that stands beside it in the bound, so that an exact 0 in the preset does not make the ratio infinite.
double looseness(const attn_contract& custom, const attn_contract& preset) {
  double k = 0;
  const auto compare = [&](double mine, double theirs) { k = std::max(k, (1 + mine) / (1 + theirs)); };
  compare(custom.exp_error, preset.exp_error);
  compare(custom.rescale_exp_error, preset.rescale_exp_error);
  compare(custom.log_absolute, preset.log_absolute);
  compare(custom.log_relative, preset.log_relative);
  compare(custom.division_error, preset.division_error);
  compare(rounding_cost(custom, custom.qk_accumulation) - 1, rounding_cost(preset, preset.qk_accumulation) - 1);
  compare(rounding_cost(custom, custom.pv_accumulation) - 1, rounding_cost(preset, preset.pv_accumulation) - 1);
  // A narrowed scale, or separate rounding of the scaled score, adds about one u of |s x| to the argument of exp.
  compare(custom.scale_narrowed + (custom.exp_form != ATTN_EXP_DIFFERENCE),
          preset.scale_narrowed + (preset.exp_form != ATTN_EXP_DIFFERENCE));
  // Lazy rescaling lets weights grow by 2^threshold before they are rounded relative to the true maximum.
  compare(custom.rescale == ATTN_RESCALE_LAZY ? custom.lazy_threshold : 0,
          preset.rescale == ATTN_RESCALE_LAZY ? preset.lazy_threshold : 0);
  return k;
}

// Formats by what they hold: fp16 and bf16 each hold values that the other does not.
int width(std::int32_t dtype) { return dtype == ATTN_FP64 ? 3 : dtype == ATTN_FP32 ? 2 : 1; }

// What the factor does not say: fields in which the custom Contract promises less than the preset, by name.
std::vector<std::string_view> weaknesses(const attn_contract& custom, const attn_contract& preset) {
  std::vector<std::string_view> out;
  const auto weaker = [&](bool is, std::string_view name) {
    if (is) out.push_back(name);
  };
  const auto more = [&](auto member, std::string_view name) { weaker(custom.*member > preset.*member, name); };
  // From the strictest on: fused, separate, tensor core; of two tensor cores the one with more bits and fewer terms.
  const bool coarser_mma = custom.mma_terms > preset.mma_terms || custom.mma_fraction_bits < preset.mma_fraction_bits;
  const auto accumulation = [&](std::int32_t mine, std::int32_t theirs, std::string_view name) {
    weaker(mine > theirs || (mine == theirs && mine == ATTN_ACC_TENSOR_CORE && coarser_mma), name);
  };
  weaker(custom.p_dtype != preset.p_dtype && width(custom.p_dtype) <= width(preset.p_dtype), "p_dtype");
  accumulation(custom.qk_accumulation, preset.qk_accumulation, "qk_accumulation");
  accumulation(custom.pv_accumulation, preset.pv_accumulation, "pv_accumulation");
  more(&attn_contract::sum_order, "sum_order");
  // The difference form is the strictest; the other two are not comparable.
  weaker(custom.exp_form != preset.exp_form && custom.exp_form != ATTN_EXP_DIFFERENCE, "exp_form");
  more(&attn_contract::flushes_subnormals, "flushes_subnormals");
  more(&attn_contract::scale_narrowed, "scale_narrowed");
  more(&attn_contract::rescale, "rescale");
  weaker(custom.rescale == ATTN_RESCALE_LAZY && preset.rescale == ATTN_RESCALE_LAZY &&
             custom.lazy_threshold > preset.lazy_threshold,
         "lazy_threshold");
  more(&attn_contract::split_merge, "split_merge");
  weaker(custom.isolates_nonfinite < preset.isolates_nonfinite, "isolates_nonfinite");
  weaker((preset.promises & ~custom.promises) != 0, "promises");
  // An unknown block or split is charged once for every key; a smaller block of keys means more rescalings, a larger
  // one, and one of more rows, a larger workspace.
  const bool by_tile = custom.workspace_per_thread > 0;
  const auto differs = [](std::int64_t mine, std::int64_t theirs, bool smaller, bool larger) {
    return theirs != 0 && (mine == 0 || (smaller && mine < theirs) || (larger && mine > theirs));
  };
  weaker(by_tile && differs(custom.default_block_q, preset.default_block_q, false, true), "default_block_q");
  weaker(differs(custom.default_block_k, preset.default_block_k, true, by_tile), "default_block_k");
  weaker(differs(custom.max_splits, preset.max_splits, false, true), "max_splits");
  more(&attn_contract::workspace_fixed, "workspace_fixed");
  more(&attn_contract::workspace_per_row, "workspace_per_row");
  more(&attn_contract::workspace_per_value, "workspace_per_value");
  more(&attn_contract::workspace_per_split, "workspace_per_split");
  more(&attn_contract::workspace_per_thread, "workspace_per_thread");
  return out;
}

}  // namespace

std::vector<ContractField> contract_fields(const attn_contract& c) {
  std::vector<ContractField> out;
  for (const Field& f : fields) out.push_back({f.name, value_text(f, f.get(c)), f.get(c), f.meaning});
  return out;
}

std::string contract_problem(const attn_contract& c, std::int32_t op) {
  for (const Field& f : fields) {
    const double x = f.get(c);
    if (f.values) {
      const bool known =
          std::any_of(f.values->begin(), f.values->end(), [&](const Enumerator& e) { return e.value == x; });
      // Step and merge kernels have no product of queries and keys; a merge has no sums over keys either.
      const bool idle = x == 0 && op != ATTN_OP_FORWARD;
      if (!known && !idle) return "contract." + std::string(f.name) + " is " + shortest(x) + ", not a known value";
    } else if (!(x >= f.lo && x <= f.hi)) {  // a NaN is in no range
      return "contract." + std::string(f.name) + " is " + shortest(x) + ", outside [" + shortest(f.lo) + ", " +
             shortest(f.hi) + "]";
    }
  }
  if (c.acc_dtype != ATTN_FP64 && c.acc_dtype != ATTN_FP32) return "contract.acc_dtype must be fp32 or fp64";
  const bool tensor_core = c.qk_accumulation == ATTN_ACC_TENSOR_CORE || c.pv_accumulation == ATTN_ACC_TENSOR_CORE;
  // The bound takes the largest term of an aligned sum to be lossless: every significand bit of the accumulator is
  // kept.
  const int bits = c.acc_dtype == ATTN_FP64 ? 52 : 23;
  if (tensor_core && (c.mma_terms < 1 || c.mma_fraction_bits < bits))
    return "contract.mma_terms and mma_fraction_bits must be at least 1 and " + std::to_string(bits) +
           " for tensor-core accumulation";
  if (tensor_core && c.in_dtype != ATTN_FP16 && c.in_dtype != ATTN_BF16)
    return "contract.in_dtype must be fp16 or bf16 for tensor-core accumulation (no bound is derived for other "
           "operands)";
  if (c.p_dtype == ATTN_DTYPE_NONE) return "contract.p_dtype is missing; acc_dtype says that P is not rounded";
  const bool fits = op == ATTN_OP_STEP    ? c.algorithm == ATTN_ALG_STEP
                    : op == ATTN_OP_MERGE ? c.algorithm == ATTN_ALG_MERGE
                                          : c.algorithm <= ATTN_ALG_SPLIT;
  if (!fits) return "contract.algorithm does not fit the kernel's op";
  if (op == ATTN_OP_FORWARD && c.algorithm == ATTN_ALG_SPLIT && c.split_merge == ATTN_MERGE_NONE)
    return "contract.split_merge is none, but the algorithm is split";
  if (c.promises & ~known_promises) return "contract.promises has bits that this version does not know";
  if (!c.sources || !*c.sources)
    return "contract.sources is empty: say where each constant comes from (a citation or a measurement)";
  return "";
}

std::string contract_name(const attn_contract& c) {
  for (const attn_contract& p : attn::presets())
    if (same_constants(c, p)) return p.preset;
  const attn_contract* nearest = nullptr;
  double k = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> weak;
  for (const attn_contract& p : attn::presets()) {
    // A preset of the devices' exp2 is near only what computes weights that way too.
    if (!same_kind(c, p) || (p.exp_form != c.exp_form && p.exp_form != ATTN_EXP_DIFFERENCE)) continue;
    const double factor = std::max(looseness(c, p), 1.0);
    std::vector<std::string_view> fields_of_p = weaknesses(c, p);
    if (nearest && std::pair(factor, fields_of_p.size()) >= std::pair(k, weak.size())) continue;
    nearest = &p, k = factor, weak = std::move(fields_of_p);
  }
  if (!nearest) return "custom, unlike any preset";
  const std::string preset = nearest->preset;
  std::string names;
  for (const std::string_view name : weak) names += (names.empty() ? "" : ", ") + std::string(name);
  if (k <= 1)
    return weak.empty() ? "custom, no looser than " + preset : "custom, weaker than " + preset + " in " + names;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", k);
  return "custom, " + std::string(text) + " times looser than " + preset + (weak.empty() ? "" : ", weaker in " + names);
}

}  // namespace attest
