// batch-invariant, gqa-expands, strides: the same rows, packed differently.
#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

// Entries first..first+count of the leading axis of a tensor with `width` elements per entry.
void slice_leading(Case& c, const std::string& tensor, std::int64_t first, std::int64_t count, std::int64_t width) {
  auto it = c.values.tensors.find(tensor);
  if (it == c.values.tensors.end()) return;
  auto& v = it->second.literal;
  v = std::vector<double>(v.begin() + first * width, v.begin() + (first + count) * width);
  if (v.empty()) c.values.tensors.erase(it);
}

void slice_mask(MaskTensor& m, std::int64_t batch) {
  if (m.literal.empty() || m.mask_shape[0] == 1) return;
  const std::int64_t width = m.mask_shape[1] * m.mask_shape[2] * m.mask_shape[3];
  m.literal = {m.literal.begin() + batch * width, m.literal.begin() + (batch + 1) * width};
  m.mask_shape[0] = 1;
}

Case batch_entry(const Case& whole, std::int64_t b) {
  Case c = whole;
  const Shape& s = whole.shape;
  slice_leading(c, "q", b, 1, s.q_heads * s.tq * s.d_qk);
  slice_leading(c, "k", b, 1, s.kv_heads * s.tk * s.d_qk);
  slice_leading(c, "v", b, 1, s.kv_heads * s.tk * s.d_v);
  slice_mask(c.mask.visible, b);
  slice_mask(c.mask.additive, b);
  if (!c.mask.kv_len.empty()) c.mask.kv_len = {whole.mask.kv_len[b]};
  c.shape.batch = 1;
  return c;
}

CheckResult check_batch(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case whole = frozen(c, kernel);
  const Run all = run_case(kernel, whole);
  if (!all.ok()) return stopped(all.execution);
  const bool bitwise = promises(kernel, ATTN_PROMISE_BATCH_INVARIANT);
  Tally tally;
  for (std::int64_t b = 0; b < c.shape.batch; ++b) {
    const Run one = run_case(kernel, batch_entry(whole, b));
    if (!one.ok()) return stopped(one.execution);
    std::vector<RowPair> rows;
    for (const RowIndex& at : judged_rows(one.problem, context)) rows.push_back({{b, at.head, at.i}, at});
    same_rows(tally, kernel, all.problem, one.problem, rows, bitwise, "in the batch and alone");
  }
  return tally.finish("the problem has no output elements");
}

std::string why_not_batch(const Case& c, const Kernel& kernel) {
  if (auto why = why_not_forward(c, kernel); !why.empty()) return why;
  return c.shape.batch < 2 ? "one batch entry is alone already" : "";
}

void shape_batch(Case& c, Random& random) {
  c.shape.batch = random.between(2, 4);
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random);
  if (c.mask.kv_len.empty() && random.chance(0.5))
    for (std::int64_t b = 0; b < c.shape.batch; ++b) c.mask.kv_len.push_back(random.between(0, c.shape.tk));
}

// Each kv head written out once per query head that reads it.
void expand(Case& c, const std::string& tensor, std::int64_t group, std::int64_t width) {
  auto it = c.values.tensors.find(tensor);
  if (it == c.values.tensors.end()) return;
  std::vector<double> out;
  const auto& v = it->second.literal;
  for (std::size_t head = 0; head < v.size() / width; ++head)
    for (std::int64_t n = 0; n < group; ++n)
      out.insert(out.end(), v.begin() + head * width, v.begin() + (head + 1) * width);
  it->second.literal = std::move(out);
}

CheckResult check_gqa(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case grouped = frozen(c, kernel);
  const Shape& s = c.shape;
  const std::int64_t group = s.q_heads / s.kv_heads;
  Case repeated = grouped;
  expand(repeated, "k", group, s.tk * s.d_qk);
  expand(repeated, "v", group, s.tk * s.d_v);
  repeated.shape.kv_heads = s.q_heads;
  const Run a = run_case(kernel, grouped);
  if (!a.ok()) return stopped(a.execution);
  const Run b = run_case(kernel, repeated);
  if (!b.ok()) return stopped(b.execution);
  std::vector<RowPair> rows;
  for (const RowIndex& at : judged_rows(a.problem, context)) rows.push_back({at, at});
  Tally tally;
  same_rows(tally, kernel, a.problem, b.problem, rows, promises(kernel, ATTN_PROMISE_HEAD_PACKING_INVARIANT),
            "against explicitly repeated kv heads");
  return tally.finish("the problem has no output elements");
}

std::string why_not_gqa(const Case& c, const Kernel& kernel) {
  if (auto why = why_not_forward(c, kernel); !why.empty()) return why;
  return c.shape.q_heads == c.shape.kv_heads ? "every query head has a kv head of its own" : "";
}

void shape_gqa(Case& c, Random& random) {
  c.shape.q_heads = c.shape.kv_heads * random.between(2, 6);
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random);
}

CheckResult check_strides(const Case& c, const Kernel& kernel, const LawContext& context) {
  Case dense = c;
  dense.q_layout = dense.k_layout = dense.v_layout = dense.o_layout = Layout{};
  const Run base = run_case(kernel, dense);
  if (!base.ok()) return stopped(base.execution);
  Random random = choices(context, c, 0x73747264);
  const bool bitwise = promises(kernel, ATTN_PROMISE_LAYOUT_INVARIANT), forward = c.op == Op::forward;
  Tally tally;
  CheckResult refused;
  int ran = 0;
  const auto any = [&] { return Layout{forward && random.chance(0.5), random.between(0, 9), random.between(0, 3)}; };
  for (int n = 0; n < 4; ++n) {
    Case x = c;  // the case's own layout first
    if (n == 1) x.q_layout = x.k_layout = x.v_layout = x.o_layout = Layout{forward, forward ? 0 : 1, 0};
    if (n > 1) x.q_layout = any(), x.k_layout = any(), x.v_layout = any(), x.o_layout = any();
    const Run run = run_case(kernel, x);
    if (run.execution.status == Outcome::rejected) {
      refused = stopped(run.execution);
      continue;
    }
    if (!run.ok()) return stopped(run.execution);
    ++ran;
    agree_runs(tally, kernel, base.problem, run.problem, bitwise, context, "through other strides");
    if (const std::string report = run.problem.untouched_report(); !report.empty()) tally.fail("", report);
  }
  if (ran == 0) return refused;
  return tally.finish("the problem has no output elements");
}

void shape_strides(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random);
}

}  // namespace

Law batch_invariant_law() {
  return {
      "batch-invariant",
      "Each batch entry alone gives what it gives in the batch: bit for bit where promised, else within both bounds.",
      why_not_batch, check_batch, shape_batch};
}

Law gqa_expands_law() {
  return {"gqa-expands",
          "Grouped heads equal explicitly repeated heads: bit for bit where promised, else within both bounds.",
          why_not_gqa, check_gqa, shape_gqa};
}

Law strides_law() {
  return {"strides",
          "The same values through other strides give the same bits where promised, else the same within both bounds.",
          why_not_any, check_strides, shape_strides};
}

}  // namespace attest
