#include "properties/tests/broken_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

namespace attest::broken {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMistakes = static_cast<int>(Mistake::unusual) + 1;

float& at(const attn_tensor& t, std::int64_t a, std::int64_t b = 0, std::int64_t c = 0, std::int64_t d = 0) {
  return static_cast<float*>(t.data)[a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3]];
}

bool lets_through(const attn_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!t.data) return true;
  const std::int64_t n = b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + j * t.stride[3];
  return t.dtype == ATTN_U8 ? static_cast<const std::uint8_t*>(t.data)[n] != 0
                            : static_cast<const float*>(t.data)[n] == 0;
}

bool visible(const attn_problem& p, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, Mistake mistake) {
  const attn_mask& m = p.mask;
  const std::int64_t offset = m.causal == ATTN_CAUSAL_BOTTOM_RIGHT ? p.k.shape[2] - p.q.shape[2] : 0;
  if (m.causal != ATTN_CAUSAL_NONE && j > i + offset) return false;
  if (m.kv_len && mistake != Mistake::kv_len_ignored && j >= m.kv_len[b]) return false;
  return lets_through(m.visible, b, h, i, j) && lets_through(m.additive, b, h, i, j);
}

double value(const attn_problem& p, std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t e, Mistake mistake) {
  if (mistake != Mistake::ignores_value_stride) return at(p.v, b, h, j, e);
  return static_cast<const float*>(p.v.data)[b * p.v.stride[0] + h * p.v.stride[1] + j * p.v.shape[3] + e];
}

void forward_row(const attn_problem& p, std::int64_t b, std::int64_t h, std::int64_t i, Mistake mistake) {
  static std::atomic<int> calls{0};
  const std::int64_t tq = p.q.shape[2], tk = p.k.shape[2], d = p.q.shape[3], d_v = p.v.shape[3];
  const std::int64_t hkv = p.k.shape[1];
  const std::int64_t kv = mistake == Mistake::heads_interleaved ? h % hkv : h / (p.q.shape[1] / hkv);
  if (mistake == Mistake::leaves_last_row && tq > 1 && i == tq - 1) return;
  const double scale = mistake == Mistake::scale_slightly_off ? p.scale * (1 + 0x1p-8) : p.scale;

  std::vector<double> s(tk, -kInfinity);
  double m = -kInfinity;
  for (std::int64_t j = 0; j < tk; ++j) {
    const bool dropped = (mistake == Mistake::decode_drops_last_key && tq == 1 && tk > 1 && j == tk - 1) ||
                         (mistake == Mistake::drops_single_last_key && j == tk - 1 && p.tiling.block_k > 1 &&
                          tk % p.tiling.block_k == 1);
    const bool seen = visible(p, b, h, i, j, mistake) && !dropped;
    if (!seen && mistake != Mistake::maximum_over_masked_keys) continue;
    double x = 0;
    for (std::int64_t c = 0; c < d; ++c) x += static_cast<double>(at(p.q, b, h, i, c)) * at(p.k, b, kv, j, c);
    m = std::max(m, x * scale);
    if (seen) s[j] = x * scale;
    if (seen && std::isnan(x)) m = x;
  }
  const bool empty = std::all_of(s.begin(), s.end(), [](double x) { return x == -kInfinity; });
  const double shift = mistake == Mistake::no_maximum ? 0 : m;
  double l = 0;
  std::vector<double> acc(d_v, 0.0);
  for (std::int64_t j = 0; j < tk; ++j) {
    const bool counts = s[j] != -kInfinity;
    if (!counts && mistake != Mistake::reads_masked_values) continue;
    // Single precision is where exp without a maximum overflows.
    double w = counts ? std::exp(s[j] - shift) : 0;
    if (mistake == Mistake::no_maximum) w = std::exp(static_cast<float>(s[j]));
    if (mistake == Mistake::maximum_over_masked_keys) w = static_cast<float>(w);
    if (mistake == Mistake::last_key_counts_double && j == tk - 1 && tk > 1) w *= 2;
    l += w;
    for (std::int64_t e = 0; e < d_v; ++e) acc[e] += w * value(p, b, kv, j, e, mistake);
  }
  for (std::int64_t e = 0; e < d_v; ++e) {
    double o = empty && mistake != Mistake::empty_row_is_nan ? 0 : acc[e] / l;
    if (mistake == Mistake::off_by_a_thousandth) o *= 1.001;
    if (mistake == Mistake::weights_do_not_add_up) o *= 0.98;
    if (mistake == Mistake::adds_a_millionth) o += 1e-6;
    if (mistake == Mistake::nan_becomes_zero && std::isnan(o)) o = 0;
    float out = static_cast<float>(o);
    // Another last bit at every call: allowed where nothing is promised.
    if (mistake == Mistake::unusual && std::isnormal(out)) out = std::nextafter(out, ++calls % 2 ? 1e30f : -1e30f);
    const bool nudge = (mistake == Mistake::counts_its_calls && ++calls % 7 == 0) ||
                       (mistake == Mistake::normalises_in_lse && !p.lse.data) ||
                       (mistake == Mistake::later_batches_differ && b > 0) ||
                       (mistake == Mistake::odd_blocks_differ && p.tiling.block_k % 2 == 1);
    if (nudge) out = std::nextafter(out, 1e30f);
    at(p.o, b, h, i, e) = out;
  }
  if (p.lse.data) {
    double lse = empty ? -kInfinity : shift + std::log(l);
    if (mistake == Mistake::lse_without_maximum && !empty) lse = std::log(l);
    if (mistake == Mistake::unusual) lse = empty ? kInfinity : lse * (1 / std::log(2.0));
    at(p.lse, b, h, i) = static_cast<float>(lse);
  }
  if (mistake == Mistake::writes_to_inputs && d > 0) at(p.q, b, h, i, 0) += 1;
}

void forward(const attn_problem& p, Mistake mistake) {
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b)
    for (std::int64_t h = 0; h < p.q.shape[1]; ++h)
      for (std::int64_t i = 0; i < p.q.shape[2]; ++i) forward_row(p, b, h, i, mistake);
}

void step(const attn_problem& p, Mistake mistake) {
  const std::int64_t rows = p.a.m.shape[0], keys = p.scores.shape[1], d_v = p.a.acc.data ? p.a.acc.shape[1] : 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    double m = at(p.a.m, r);
    for (std::int64_t j = 0; j < keys; ++j) {
      const float s = at(p.scores, r, j);
      m = std::isnan(s) ? s : std::max<double>(m, s);
    }
    const double c = m == -kInfinity ? 0 : std::exp(at(p.a.m, r) - m);
    double l = c * at(p.a.l, r);
    std::vector<double> acc(d_v, 0.0);
    for (std::int64_t e = 0; e < d_v; ++e)
      acc[e] = (mistake == Mistake::step_forgets_rescale ? (c > 0 ? 1 : 0) : c) * at(p.a.acc, r, e);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (at(p.scores, r, j) == -kInfinity) continue;
      const double w = std::exp(at(p.scores, r, j) - m);
      l += w;
      for (std::int64_t e = 0; e < d_v; ++e) acc[e] += w * at(p.v, j, e);
    }
    at(p.out.m, r) = static_cast<float>(m);
    at(p.out.l, r) = static_cast<float>(l);
    for (std::int64_t e = 0; e < d_v; ++e) at(p.out.acc, r, e) = static_cast<float>(acc[e]);
  }
}

// Merge of (m, l) and (m, l, acc).
void merge(const attn_problem& p, Mistake mistake) {
  const std::int64_t rows = p.a.m.shape[0], d_v = p.a.acc.data ? p.a.acc.shape[1] : 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double ma = at(p.a.m, r), mb = at(p.b.m, r);
    const double m = std::isnan(ma) || std::isnan(mb) ? ma + mb : std::max(ma, mb);
    const bool guard = m == -kInfinity && mistake != Mistake::merge_without_guard;
    const double wa = guard ? 0 : std::exp(ma - m);
    double wb = guard ? 0 : std::exp(mb - m);
    if (mistake == Mistake::merge_forgets_rescale && wb > 0) wb = 1;
    const auto blend = [&](float x, float y) {
      if (mistake == Mistake::merge_is_lopsided)
        return std::fma(static_cast<float>(wa), x, static_cast<float>(wb) * y);  // one product rounded, one not
      return static_cast<float>(wa * x + wb * y);
    };
    at(p.out.m, r) = static_cast<float>(m);
    at(p.out.l, r) = blend(at(p.a.l, r), at(p.b.l, r));
    for (std::int64_t e = 0; e < d_v; ++e) at(p.out.acc, r, e) = blend(at(p.a.acc, r, e), at(p.b.acc, r, e));
  }
}

std::int32_t refuse(char* why, std::size_t size, const char* reason) {
  std::snprintf(why, size, "%s", reason);
  return ATTN_REJECTED;
}

std::int32_t supports(const attn_problem* p, char* why, std::size_t size) {
  if (p->softcap != 0 || p->mask.window_left >= 0 || p->mask.window_right >= 0 || p->bias.data || p->sinks.data)
    return refuse(why, size, "reserved option");
  if (p->op == ATTN_OP_FORWARD && (!(p->scale > 0) || !std::isfinite(p->scale))) return refuse(why, size, "scale");
  if (p->op != ATTN_OP_FORWARD && p->state_kind == ATTN_STATE_OLSE) return refuse(why, size, "state");
  return ATTN_OK;
}

// The mistake is a template argument, since a C function pointer carries no state.
template <int mistake>
std::int32_t run(const attn_problem* p, void*, std::size_t, char*, std::size_t) {
  const auto m = static_cast<Mistake>(mistake);
  if (p->op == ATTN_OP_FORWARD) forward(*p, m);
  if (p->op == ATTN_OP_STEP) step(*p, m);
  if (p->op == ATTN_OP_MERGE) merge(*p, m);
  return ATTN_OK;
}

using Runs = std::array<decltype(&run<0>), kMistakes>;
template <int... n>
constexpr Runs all_runs(std::integer_sequence<int, n...>) {
  return {&run<n>...};
}

attn_contract contract_of(std::int32_t op) {
  attn_contract c{};
  c.struct_size = sizeof c;
  c.algorithm = op == ATTN_OP_STEP ? ATTN_ALG_STEP : op == ATTN_OP_MERGE ? ATTN_ALG_MERGE : ATTN_ALG_STANDARD;
  c.in_dtype = c.acc_dtype = c.p_dtype = ATTN_FP32;
  c.qk_accumulation = c.pv_accumulation = ATTN_ACC_MUL_ADD;
  c.sum_order = ATTN_SUM_SEQUENTIAL;
  c.exp_form = ATTN_EXP_DIFFERENCE;
  c.exp_error = c.rescale_exp_error = 2;
  c.log_absolute = c.log_relative = 2;
  c.division_error = 1;
  c.rescale = ATTN_RESCALE_ALWAYS;
  // A merge of (m, l, acc) divides nothing; of (O, LSE) it would renormalise.
  c.split_merge = op == ATTN_OP_MERGE ? ATTN_MERGE_RENORMALISED : ATTN_MERGE_NONE;
  c.isolates_nonfinite = ATTN_ISOLATES_ROW;
  c.promises = ATTN_PROMISE_DETERMINISTIC | ATTN_PROMISE_ROW_ISOLATED | ATTN_PROMISE_BATCH_INVARIANT |
               ATTN_PROMISE_LAYOUT_INVARIANT | ATTN_PROMISE_HEAD_PACKING_INVARIANT | ATTN_PROMISE_TILING_INVARIANT |
               ATTN_PROMISE_COMMUTATIVE_MERGE;
  c.sources = "computed in double, rounded once";
  return c;
}

}  // namespace

const std::vector<Broken>& table() {
  static const std::vector<Broken> rows{
      {"encloses", Mistake::off_by_a_thousandth, ATTN_OP_FORWARD},
      {"encloses", Mistake::step_forgets_rescale, ATTN_OP_STEP},
      {"encloses", Mistake::merge_forgets_rescale, ATTN_OP_MERGE},
      {"fully-masked-row", Mistake::empty_row_is_nan, ATTN_OP_FORWARD},
      {"merge-identity", Mistake::merge_without_guard, ATTN_OP_MERGE},
      {"merge-commutes", Mistake::merge_is_lopsided, ATTN_OP_MERGE},
      {"merge-associates", Mistake::merge_forgets_rescale, ATTN_OP_MERGE},
      {"chunking", Mistake::drops_single_last_key, ATTN_OP_FORWARD},
      {"chunking", Mistake::step_forgets_rescale, ATTN_OP_STEP},
      {"step-folds", Mistake::step_forgets_rescale, ATTN_OP_STEP},
      {"swings", Mistake::no_maximum, ATTN_OP_FORWARD},
      {"swings", Mistake::step_forgets_rescale, ATTN_OP_STEP},
      {"poison", Mistake::reads_masked_values, ATTN_OP_FORWARD},
      {"causal-prefix", Mistake::maximum_over_masked_keys, ATTN_OP_FORWARD},
      {"unwritten", Mistake::leaves_last_row, ATTN_OP_FORWARD},
      {"unwritten", Mistake::normalises_in_lse, ATTN_OP_FORWARD},
      {"untouched", Mistake::writes_to_inputs, ATTN_OP_FORWARD},
      {"deterministic", Mistake::counts_its_calls, ATTN_OP_FORWARD},
      {"batch-invariant", Mistake::later_batches_differ, ATTN_OP_FORWARD},
      {"tiling-invariant", Mistake::odd_blocks_differ, ATTN_OP_FORWARD},
      {"strides", Mistake::ignores_value_stride, ATTN_OP_FORWARD},
      {"gqa-expands", Mistake::heads_interleaved, ATTN_OP_FORWARD},
      {"permutes", Mistake::last_key_counts_double, ATTN_OP_FORWARD},
      {"hull", Mistake::weights_do_not_add_up, ATTN_OP_FORWARD},
      {"scales", Mistake::adds_a_millionth, ATTN_OP_FORWARD},
      {"shifts", Mistake::lse_without_maximum, ATTN_OP_FORWARD},
      {"decode-is-prefill", Mistake::decode_drops_last_key, ATTN_OP_FORWARD},
      {"option-matters", Mistake::kv_len_ignored, ATTN_OP_FORWARD},
      {"nan-reaches", Mistake::nan_becomes_zero, ATTN_OP_FORWARD},
      {"expected", Mistake::scale_slightly_off, ATTN_OP_FORWARD},
      {"unbiased", Mistake::scale_slightly_off, ATTN_OP_FORWARD},
  };
  return rows;
}

Kernel unusual_kernel() {
  Kernel k = kernel(ATTN_OP_FORWARD, Mistake::unusual);
  auto* abi = const_cast<attn_kernel*>(k.abi);  // made by kernel() just now
  abi->contract.promises = 0;
  abi->contract.isolates_nonfinite = ATTN_ISOLATES_HEAD;
  abi->contract.lse_base = ATTN_LSE_BASE_2;
  abi->contract.empty_lse = ATTN_EMPTY_LSE_POS_INF;
  abi->contract.division_error = 2;
  return k;
}

Kernel kernel(std::int32_t op, Mistake mistake) {
  static constexpr Runs runs = all_runs(std::make_integer_sequence<int, kMistakes>{});
  // Kept for as long as the tests run: a Kernel only points at it.
  static std::vector<std::unique_ptr<attn_kernel>> kept;
  auto k = std::make_unique<attn_kernel>();
  k->struct_size = sizeof(attn_kernel);
  k->op = op;
  k->name = "readable";
  k->summary = "a readable attention with one mistake";
  k->contract = contract_of(op);
  k->supports = supports;
  k->run = runs[static_cast<std::size_t>(mistake)];
  kept.push_back(std::move(k));
  return {kept.back().get(), "readable", "tests", "custom", {kept.back().get()}};
}

}  // namespace attest::broken
