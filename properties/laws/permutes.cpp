// permutes, decode-is-prefill: the same softmax, asked for in another way.
#include <algorithm>
#include <numeric>

#include "properties/generate.h"
#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

std::string why_not_permutes(const Case& c, const Kernel& kernel) {
  if (auto why = why_not_forward(c, kernel); !why.empty()) return why;
  if (c.mask.causal != Causal::none || needs_causal(kernel)) return "a causal mask gives keys an order";
  for (std::int64_t n : c.mask.kv_len)
    if (n != c.shape.tk) return "kv_len gives keys an order";
  return "";
}

// Moves entry order[j] of the second to last axis to j; for masks, of the last axis (width 1).
template <class T>
void reorder(std::vector<T>& values, const std::vector<std::int64_t>& order, std::int64_t width) {
  const std::int64_t keys = static_cast<std::int64_t>(order.size());
  const std::vector<T> old = values;
  for (std::size_t block = 0; block < old.size(); block += keys * width)
    for (std::int64_t j = 0; j < keys; ++j)
      std::copy_n(old.begin() + block + order[j] * width, width, values.begin() + block + j * width);
}

void reorder_mask(MaskTensor& m, const std::vector<std::int64_t>& order) {
  if (!m.literal.empty() && m.mask_shape[3] > 1) reorder(m.literal, order, 1);
}

CheckResult check_permutes(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case straight = frozen(c, kernel);
  if (c.shape.tk < 2 || c.shape.tq == 0) return Tally().finish("fewer than two keys have one order");
  const Run a = run_case(kernel, straight);
  if (!a.ok()) return stopped(a.execution);
  std::vector<std::int64_t> order(c.shape.tk);
  std::iota(order.begin(), order.end(), 0);
  Random random = choices(context, c, 0x7065726d);
  // Reversal turns every rising maximum into a falling one; a shuffle moves keys between tiles and splits.
  if (random.chance(0.3))
    std::reverse(order.begin(), order.end());
  else
    for (std::size_t n = order.size(); n-- > 1;)
      std::swap(order[n], order[random.between(0, static_cast<std::int64_t>(n))]);
  Case shuffled = straight;
  reorder(shuffled.values.tensors.at("k").literal, order, c.shape.d_qk);
  reorder(shuffled.values.tensors.at("v").literal, order, c.shape.d_v);
  reorder_mask(shuffled.mask.visible, order);
  reorder_mask(shuffled.mask.additive, order);
  const Run b = run_case(kernel, shuffled);
  if (!b.ok()) return stopped(b.execution);
  Tally tally;
  CheckResult judged = judge_problem(kernel, b.problem, context);
  if (judged.outcome == Outcome::fail) judged.finding.where += " with the keys permuted";
  tally.absorb(judged);
  std::vector<RowPair> rows;
  for (const RowIndex& at : judged_rows(a.problem, context)) rows.push_back({at, at});
  same_rows(tally, kernel, a.problem, b.problem, rows, false, "against permuted keys");
  return tally.finish("the problem has no output elements");
}

void shape_permutes(Case& c, Random& random) {
  c.mask.causal = Causal::none;
  c.mask.kv_len.clear();
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 2, random, 20);
}

// The last row of a mask.
void last_row(MaskTensor& m) {
  if (m.literal.empty() || m.mask_shape[2] == 1) return;
  const std::int64_t rows = m.mask_shape[2], keys = m.mask_shape[3];
  std::vector<std::uint8_t> out;
  for (std::size_t head = 0; head < m.literal.size(); head += rows * keys)
    out.insert(out.end(), m.literal.begin() + head + (rows - 1) * keys, m.literal.begin() + head + rows * keys);
  m.literal = std::move(out);
  m.mask_shape[2] = 1;
}

Case decoding(const Case& prefill) {
  Case c = prefill;
  const Shape& s = prefill.shape;
  const auto& q = prefill.values.tensors.at("q").literal;
  std::vector<double> last;
  for (std::int64_t head = 0; head < s.batch * s.q_heads; ++head) {
    const auto from = q.begin() + ((head + 1) * s.tq - 1) * s.d_qk;
    last.insert(last.end(), from, from + s.d_qk);
  }
  set_literal(c, "q", std::move(last));
  last_row(c.mask.visible);
  last_row(c.mask.additive);
  // Top-left: the last row sees the first Tq keys, which is a length. Bottom-right: it sees all of them.
  if (prefill.mask.causal == Causal::top_left) {
    c.mask.kv_len.resize(s.batch, s.tk);
    for (auto& n : c.mask.kv_len) n = std::min(n, s.tq);
  }
  // Of a single row bottom-right masks nothing, and a kernel for causal problems only takes it.
  if (prefill.mask.causal != Causal::none) c.mask.causal = Causal::bottom_right;
  c.shape.tq = 1;
  return c;
}

CheckResult check_decode(const Case& c, const Kernel& kernel, const LawContext& context) {
  if (c.shape.tq == 0) return Tally().finish("the problem has no rows");
  const Case prefill = frozen(c, kernel);
  const Run one = run_case(kernel, decoding(prefill));
  if (!one.ok()) return stopped(one.execution);
  Kernel whole = kernel;
  Run all = run_case(kernel, prefill);
  // A kernel for decoding only is compared with its sibling for whole sequences.
  if (all.execution.status == Outcome::rejected)
    if (const attn_kernel* twin = sibling(kernel, ATTN_OP_FORWARD, ATTN_ALG_FA2)) {
      whole = as_kernel(twin, kernel);
      all = run_case(whole, prefill);
    }
  if (!all.ok()) return stopped(all.execution);
  const std::int64_t last = c.shape.tq - 1;
  const auto oa = all.problem.output("o"), ob = one.problem.output("o");
  const bool has_lse = all.problem.has_output("lse") && one.problem.has_output("lse") &&
                       whole.abi->contract.lse_base == kernel.abi->contract.lse_base;
  const auto la = has_lse ? all.problem.output("lse") : std::vector<double>{};
  const auto lb = has_lse ? one.problem.output("lse") : std::vector<double>{};
  Tally tally;
  for (const RowIndex& at : judged_rows(one.problem, context)) {
    const RowIndex there{at.batch, at.head, last};
    const Evaluated a = evaluate_row(whole, all.problem, there), b = evaluate_row(kernel, one.problem, at);
    for (std::int64_t e = has_lse ? -1 : 0; e < c.shape.d_v; ++e) {
      const double got_a = e < 0 ? la[lse_index(all.problem, there)] : oa[o_index(all.problem, there, e)];
      const double got_b = e < 0 ? lb[lse_index(one.problem, at)] : ob[o_index(one.problem, at, e)];
      within_both(tally, got_a, (e < 0 ? a.bound.lse : a.bound.o[e]).deterministic, got_b,
                  (e < 0 ? b.bound.lse : b.bound.o[e]).deterministic, 0,
                  [&] { return place(there, e) + " of prefill against decoding"; });
    }
  }
  return tally.finish("the problem has no output elements");
}

void shape_decode(Case& c, Random& random) {
  at_least(c.shape.tq, 2, random, 6);
  at_least(c.shape.tk, 1, random, 20);
}

}  // namespace

Law permutes_law() {
  return {"permutes", "Permuting keys with their values and masks stays within both bounds.", why_not_permutes,
          check_permutes, shape_permutes};
}

Law decode_is_prefill_law() {
  return {"decode-is-prefill", "The last row of prefill is the decode result within both bounds.", why_not_forward,
          check_decode, shape_decode};
}

}  // namespace attest
