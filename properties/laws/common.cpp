#include "properties/laws/common.h"

#include <cmath>
#include <limits>

#include "oracle/recipe.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string op_name(std::int32_t op) { return op == ATTN_OP_STEP ? "step" : op == ATTN_OP_MERGE ? "merge" : "forward"; }

std::string why_not_op(const Case& c, const Kernel& kernel, Op op) {
  if (c.op != op) return "the law is about another operation";
  return why_not_any(c, kernel);
}

void freeze_mask(MaskTensor& m, const Shape& shape, std::int64_t block_k) {
  if (!m.present() || !m.literal.empty()) return;
  const MaskValues values = make_mask(m, shape, block_k);
  m = MaskTensor{};
  if (values.visible.empty()) return;  // no rows or no keys: nothing is masked
  m.mask_shape.assign(values.shape, values.shape + 4);
  m.literal = values.visible;
}

}  // namespace

std::string why_not_any(const Case& c, const Kernel& kernel) {
  const std::int32_t op = c.op == Op::step ? ATTN_OP_STEP : c.op == Op::merge ? ATTN_OP_MERGE : ATTN_OP_FORWARD;
  if (kernel.abi->op != op) return "the case is a " + op_name(op) + ", the kernel a " + op_name(kernel.abi->op);
  if (c.dtype != DType::any && c.dtype != formats_for(kernel).storage) return "the case is in another format";
  return "";
}

std::string why_not_forward(const Case& c, const Kernel& kernel) { return why_not_op(c, kernel, Op::forward); }
std::string why_not_step(const Case& c, const Kernel& kernel) { return why_not_op(c, kernel, Op::step); }
std::string why_not_merge(const Case& c, const Kernel& kernel) { return why_not_op(c, kernel, Op::merge); }

Case frozen(const Case& c, const Kernel& kernel) {
  Case out = c;
  // Without masks every key is seen: those that nobody sees keep their own numbers instead of the problem's poison.
  Case unmasked = c;
  unmasked.mask = {};
  const Problem p(unmasked, formats_for(kernel));
  const auto keep = [&](const char* tensor, const char* from) {
    const auto values = p.input(from);
    out.values.tensors[tensor] = TensorValues{{values.begin(), values.end()}, ""};
    // A tensor without elements has no literal; its recipe makes none either.
    if (values.empty()) out.values.tensors.erase(tensor);
  };
  if (c.op == Op::forward) {
    for (const char* t : {"q", "k", "v"}) keep(t, t);
    freeze_mask(out.mask.visible, c.shape, c.tiling.block_k);
    freeze_mask(out.mask.additive, c.shape, c.tiling.block_k);
  } else {
    keep("m", "m");
    if (c.state != StateKind::olse) keep("l", "l");
    if (c.state != StateKind::ml) keep("acc", "acc");
    if (c.op == Op::step) keep("scores", "scores");
    if (c.op == Op::step && c.state != StateKind::ml) keep("v", "v");
  }
  // The other names of a normalised state's tensors.
  out.values.tensors.erase("o");
  out.values.tensors.erase("lse");
  out.expected = {};
  return out;
}

Random choices(const LawContext& context, const Case& c, std::uint64_t tag) {
  return Random(context.seed + c.values.seed, tag);
}

const attn_kernel* sibling(const Kernel& kernel, std::int32_t op, std::int32_t algorithm) {
  const attn_contract& mine = kernel.abi->contract;
  const attn_kernel* best = nullptr;
  for (const attn_kernel* k : kernel.siblings) {
    if (k == kernel.abi || k->op != op || k->contract.acc_dtype != mine.acc_dtype) continue;
    if (mine.in_dtype != ATTN_DTYPE_NONE && k->contract.in_dtype != mine.in_dtype) continue;
    if (algorithm != 0 && k->contract.algorithm != algorithm) continue;
    // The same P format as well, if there is one.
    if (!best || (best->contract.p_dtype != mine.p_dtype && k->contract.p_dtype == mine.p_dtype)) best = k;
  }
  return best;
}

Kernel as_kernel(const attn_kernel* abi, const Kernel& like) {
  Kernel k = like;
  k.abi = abi;
  k.name = abi->name;
  return k;
}

void at_least(std::int64_t& n, std::int64_t least, Random& random, std::int64_t spread) {
  if (n < least) n = least + random.between(0, spread);
}

void nothing_to_shape(Case&, Random&) {}

Run run_case(const Kernel& kernel, const Case& c, const ProblemOptions& options) {
  return run_with(
      kernel, c, [](Problem&) {}, options);
}

Run run_with(const Kernel& kernel, const Case& c, const std::function<void(Problem&)>& change,
             const ProblemOptions& options) {
  Run run{Problem(c, formats_for(kernel), options), {}};
  change(run.problem);
  run.execution = execute(kernel, run.problem);
  return run;
}

std::vector<std::string> outputs_of(const Problem& p) {
  std::vector<std::string> out;
  for (const char* t : {"o", "lse", "m", "l", "acc"})
    if (p.has_output(t)) out.emplace_back(t);
  return out;
}

void same_bits(Tally& tally, const Problem& a, const Problem& b, const std::string& label) {
  for (const std::string& tensor : outputs_of(a)) {
    const auto x = a.output_bits(tensor), y = b.output_bits(tensor);
    // Values are decoded only when something differs.
    std::vector<double> va, vb;
    if (x != y) va = a.output(tensor), vb = b.output(tensor);
    for (std::size_t n = 0; n < x.size(); ++n)
      tally.same(x[n], y[n], va.empty() ? 0 : va[n], vb.empty() ? 0 : vb[n],
                 [&] { return tensor + "[" + std::to_string(n) + "] " + label; });
  }
}

std::vector<RowPair> all_rows(const Problem& p) {
  std::vector<RowPair> rows;
  const Shape& s = p.source().shape;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t i = 0; i < s.tq; ++i) rows.push_back({{b, h, i}, {b, h, i}});
  return rows;
}

void same_rows(Tally& tally, const Kernel& kernel, const Problem& a, const Problem& b, const std::vector<RowPair>& rows,
               bool bitwise, const std::string& label) {
  const std::int64_t d_v = a.source().shape.d_v;
  const auto oa = a.output("o"), ob = b.output("o");
  const auto xa = a.output_bits("o"), xb = b.output_bits("o");
  std::vector<double> la, lb;
  std::vector<std::uint64_t> ya, yb;
  if (a.has_output("lse")) {
    la = a.output("lse"), lb = b.output("lse");
    ya = a.output_bits("lse"), yb = b.output_bits("lse");
  }
  for (const RowPair& pair : rows) {
    Evaluated ea, eb;
    if (!bitwise) ea = evaluate_row(kernel, a, pair.a), eb = evaluate_row(kernel, b, pair.b);
    for (std::int64_t e = la.empty() ? 0 : -1; e < d_v; ++e) {
      const auto where = [&] { return place(pair.a, e) + " " + label; };
      const std::int64_t na = e < 0 ? lse_index(a, pair.a) : o_index(a, pair.a, e);
      const std::int64_t nb = e < 0 ? lse_index(b, pair.b) : o_index(b, pair.b, e);
      const double got_a = e < 0 ? la[na] : oa[na], got_b = e < 0 ? lb[nb] : ob[nb];
      if (bitwise) {
        const bool differ = e < 0 ? ya[na] != yb[nb] : xa[na] != xb[nb];
        // What the rows' heads hold besides may not be the same in both problems, nor which tiles are visited.
        if (differ && (reached_by_head(kernel, a, pair.a) || reached_by_head(kernel, b, pair.b))) {
          tally.note(Verdict::vacuous, "the Contract lets a non-finite value that a row does not see reach it");
          continue;
        }
        tally.same(e < 0 ? ya[na] : xa[na], e < 0 ? yb[nb] : xb[nb], got_a, got_b, where);
      } else {
        const ElementBound& ba = e < 0 ? ea.bound.lse : ea.bound.o[e];
        const ElementBound& bb = e < 0 ? eb.bound.lse : eb.bound.o[e];
        within_both(tally, got_a, ba.deterministic, got_b, bb.deterministic, 0, where);
      }
    }
  }
}

void agree_runs(Tally& tally, const Kernel& kernel, const Problem& a, const Problem& b, bool bitwise,
                const LawContext& context, const std::string& label) {
  if (bitwise) return same_bits(tally, a, b, label);
  tally.absorb(judge_problem(kernel, a, context));
  tally.absorb(judge_problem(kernel, b, context));
}

void within_both(Tally& tally, double got_a, double bound_a, double got_b, double bound_b, double shift,
                 const std::function<std::string()>& where) {
  const double bound = bound_a + bound_b;
  if (std::isnan(bound)) return tally.note(Verdict::undecided, kBoundIsNaN);
  if (bound == kInfinity) return tally.note(Verdict::vacuous, "the Contract admits anything at some elements");
  Judgement j;
  if (!std::isfinite(got_a) || !std::isfinite(got_b)) {
    const bool same = got_a == got_b || (std::isnan(got_a) && std::isnan(got_b));
    j.verdict = same ? Verdict::pass : Verdict::fail;
    j.error = same ? 0 : std::numeric_limits<double>::quiet_NaN();
    j.ratio = same ? 0 : kInfinity;
  } else {
    j.error = std::abs((got_a - got_b) - shift);
    j.ratio = j.error == 0 ? 0 : j.error / bound;
    j.verdict = j.error <= bound ? Verdict::pass : Verdict::fail;
  }
  tally.add(j, got_a, got_b + shift, bound, where);
}

}  // namespace attest
