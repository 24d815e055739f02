// option-matters: an option that is silently ignored gives right answers to another question.
#include <cmath>
#include <functional>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

struct Variant {
  const char* option;
  Case without;
};

std::vector<Variant> variants(const Case& c) {
  std::vector<Variant> out;
  const auto add = [&](const char* option, const std::function<void(Case&)>& change) {
    Case x = c;
    change(x);
    out.push_back({option, std::move(x)});
  };
  if (c.mask.causal != Causal::none) {
    add("causal", [](Case& x) { x.mask.causal = Causal::none; });
    if (c.shape.tq != c.shape.tk)
      add("the causal alignment",
          [](Case& x) { x.mask.causal = x.mask.causal == Causal::top_left ? Causal::bottom_right : Causal::top_left; });
  }
  if (!c.mask.kv_len.empty()) add("kv_len", [](Case& x) { x.mask.kv_len.clear(); });
  if (c.mask.visible.present()) add("the boolean mask", [](Case& x) { x.mask.visible = {}; });
  if (c.mask.additive.present()) add("the additive mask", [](Case& x) { x.mask.additive = {}; });
  add("scale", [](Case& x) { x.scale = x.effective_scale() * 2; });
  return out;
}

// Keys that nobody sees hold their own numbers instead of poison: a kernel that looks there then gives the right answer
// to the question without the option, and not just any wrong one.
Run run_revealed(const Kernel& kernel, const Case& c) {
  return run_with(kernel, c, [&](Problem& p) {
    const Shape& s = c.shape;
    for (const auto& [tensor, width] : {std::pair{"k", s.d_qk}, {"v", s.d_v}}) {
      const auto found = c.values.tensors.find(tensor);
      if (found == c.values.tensors.end()) continue;
      for (std::int64_t row = 0; row < s.batch * s.kv_heads * s.tk; ++row) {
        if (p.key_seen(row / (s.kv_heads * s.tk), row / s.tk % s.kv_heads, row % s.tk)) continue;
        for (std::int64_t n = row * width; n < (row + 1) * width; ++n)
          p.set_input(tensor, n, found->second.literal[static_cast<std::size_t>(n)]);
      }
    }
  });
}

// Truths that differ by more than both bounds ask for outputs that differ.
void compare(Tally& tally, const Kernel& kernel, const Problem& a, const Problem& b, const LawContext& context,
             const std::string& option) {
  const auto oa = a.output("o"), ob = b.output("o");
  const bool has_lse = a.has_output("lse");
  const auto la = has_lse ? a.output("lse") : std::vector<double>{};
  const auto lb = has_lse ? b.output("lse") : std::vector<double>{};
  for (const RowIndex& at : judged_rows(a, context)) {
    const Evaluated ra = evaluate_row(kernel, a, at), rb = evaluate_row(kernel, b, at);
    if (ra.anything || rb.anything) continue;
    for (std::int64_t e = has_lse ? -1 : 0; e < a.source().shape.d_v; ++e) {
      const TruthElement& ta = e < 0 ? ra.truth.lse : ra.truth.o[e];
      const TruthElement& tb = e < 0 ? rb.truth.lse : rb.truth.o[e];
      const double ba = (e < 0 ? ra.bound.lse : ra.bound.o[e]).deterministic;
      const double bb = (e < 0 ? rb.bound.lse : rb.bound.o[e]).deterministic;
      const double wa = truth_value(ta), wb = truth_value(tb);
      const bool both_finite = std::isfinite(wa) && std::isfinite(wb);
      // Of an empty and a non-empty row the LSEs are of different kinds.
      const bool apart = both_finite
                             ? std::abs(wa - wb) > ba + bb + ta.radius + tb.radius
                             : ta.kind != tb.kind && !std::isnan(wa) && !std::isnan(wb) && std::isfinite(ba + bb);
      if (!apart) continue;
      const std::int64_t n = e < 0 ? lse_index(a, at) : o_index(a, at, e);
      const double got_a = e < 0 ? la[n] : oa[n], got_b = e < 0 ? lb[n] : ob[n];
      if (got_a != got_b)
        tally.note(Verdict::pass, "");
      else
        tally.fail(place(at, e), "the output is the same with and without " + option + ", the truth is not", got_a, wa);
    }
  }
}

// What no kernel can do yet must be refused, not ignored.
void check_refusals(Tally& tally, const Kernel& kernel, const Case& c) {
  const auto refuses = [&](const char* what, const std::function<void(attn_problem&)>& change) {
    Problem p(c, formats_for(kernel));
    change(p.mutable_abi());
    char why[256] = "";
    if (kernel.abi->supports(&p.abi(), why, sizeof why) == ATTN_OK)
      tally.fail("", std::string("supports() accepts ") + what);
    else
      tally.note(Verdict::pass, "");
  };
  refuses("a softcap", [](attn_problem& p) { p.softcap = 30; });
  refuses("a window to the left", [](attn_problem& p) { p.mask.window_left = 4; });
  refuses("a window to the right", [](attn_problem& p) { p.mask.window_right = 0; });
  refuses("a scale of NaN", [](attn_problem& p) { p.scale = std::numeric_limits<double>::quiet_NaN(); });
  refuses("a scale of 0", [](attn_problem& p) { p.scale = 0; });
  refuses("a negative scale", [](attn_problem& p) { p.scale = -p.scale; });
  refuses("an infinite scale", [](attn_problem& p) { p.scale = std::numeric_limits<double>::infinity(); });
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case base = frozen(c, kernel);
  const Run a = run_revealed(kernel, base);
  if (!a.ok()) return stopped(a.execution);
  Tally tally;
  for (const Variant& v : variants(base)) {
    const Run b = run_revealed(kernel, v.without);
    if (b.execution.status == Outcome::rejected) continue;
    if (!b.ok()) return stopped(b.execution);
    compare(tally, kernel, a.problem, b.problem, context, v.option);
  }
  check_refusals(tally, kernel, base);
  return tally.finish("no option makes a difference here");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 2, random, 16);
  if (random.chance(0.4)) {
    c.mask.causal = random.chance(0.5) ? Causal::top_left : Causal::bottom_right;
    if (c.shape.tq == c.shape.tk && random.chance(0.5)) ++c.shape.tk;
  }
  if (random.chance(0.3) && c.mask.kv_len.empty())
    for (std::int64_t b = 0; b < c.shape.batch; ++b) c.mask.kv_len.push_back(random.between(0, c.shape.tk - 1));
  if (random.chance(0.3)) c.mask.visible = MaskTensor{"random", random.bits() >> 40, 0.5, {}, {}};
  if (random.chance(0.3)) c.mask.additive = MaskTensor{"random", random.bits() >> 40, 0.5, {}, {}};
}

}  // namespace

Law option_matters_law() {
  return {"option-matters",
          "Where the truths with and without an option differ by more than both bounds, so do the outputs; reserved "
          "options are refused.",
          why_not_forward, check, shape};
}

}  // namespace attest
