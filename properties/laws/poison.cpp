// poison, causal-prefix: what a row does not see must not reach it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/recipe.h"
#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string why_not(const Case& c, const Kernel& kernel) {
  if (c.op == Op::merge) return "a merge has no keys";
  if (c.op == Op::step && c.state == StateKind::ml) return "a step of (m, l) has no values";
  return why_not_any(c, kernel);
}

// Keys of a step that every row blocks.
std::vector<std::int64_t> unseen_step_keys(const Problem& p) {
  const Shape& s = p.source().shape;
  const auto scores = p.input("scores");
  std::vector<std::int64_t> out;
  for (std::int64_t j = 0; j < s.tk; ++j) {
    bool seen = false;
    for (std::int64_t r = 0; r < s.tq; ++r) seen |= scores[r * s.tk + j] != -kInfinity;
    if (!seen) out.push_back(j);
  }
  return out;
}

// Writes value into k and v at every key that no row of its head sees; counts them.
std::int64_t fill_unseen(Problem& p, double value) {
  const Shape& s = p.source().shape;
  std::int64_t count = 0;
  if (p.source().op == Op::step) {
    for (std::int64_t j : unseen_step_keys(p)) {
      ++count;
      for (std::int64_t e = 0; e < s.d_v; ++e) p.set_input("v", j * s.d_v + e, value);
    }
    return count;
  }
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t j = 0; j < s.tk; ++j) {
        if (p.key_seen(b, h, j)) continue;
        ++count;
        const std::int64_t row = (b * s.kv_heads + h) * s.tk + j;
        for (std::int64_t e = 0; e < s.d_qk; ++e) p.set_input("k", row * s.d_qk + e, value);
        for (std::int64_t e = 0; e < s.d_v; ++e) p.set_input("v", row * s.d_v + e, value);
      }
  return count;
}

bool has_padding(const Case& c) {
  for (const Layout& l : {c.q_layout, c.k_layout, c.v_layout, c.o_layout})
    if (l.row_padding > 0 || l.head_padding > 0) return true;
  return false;
}

CheckResult check_poison(const Case& c, const Kernel& kernel, const LawContext& context) {
  // Plain zeros where nobody looks; then everything else that could stand there.
  std::int64_t unseen = 0;
  const Run base = run_with(kernel, c, [&](Problem& p) { unseen = fill_unseen(p, 0.0); }, {0xA5, 0x00, 0});
  if (!base.ok()) return stopped(base.execution);
  if (unseen == 0 && !has_padding(c)) return Tally().finish("every key is seen and nothing is padded");
  const bool bitwise = promises(kernel, ATTN_PROMISE_DETERMINISTIC);
  Tally tally;
  const auto compare = [&](const Run& run, const std::string& what) {
    agree_runs(tally, kernel, base.problem, run.problem, bitwise, context, "with " + what + " at keys nobody sees");
  };
  // Patterns of storage: 0xFF is a NaN in every format, 0x7B a large finite number, 0x80 a tiny negative one.
  for (const int byte : {0xFF, 0x7B, 0x80}) {
    const Run run = run_case(kernel, c, {0xA5, static_cast<std::uint8_t>(byte), 0});
    if (!run.ok()) return stopped(run.execution);
    compare(run, "byte " + std::to_string(byte));
  }
  for (const double value : {kInfinity, -kInfinity, 6e4, -6e4}) {
    const Run run = run_with(kernel, c, [&](Problem& p) { fill_unseen(p, value); });
    if (!run.ok()) return stopped(run.execution);
    compare(run, std::to_string(value));
  }
  const Run run = run_case(kernel, c, {0xA5, 0xFF, (context.seed + c.values.seed) | 1});
  if (!run.ok()) return stopped(run.execution);
  compare(run, "random bits");
  return tally.finish("the problem has no output elements");
}

// Finite numbers of every kind; the largest ones overflow scores of the rows that do see them, which is their affair.
double any_finite(Random& random, double largest) {
  switch (random.between(0, 4)) {
    case 0:
      return 0;
    case 1:
      return random.unit() * 4 - 2;
    case 2:
      return random.chance(0.5) ? 1000 : -1000;
    case 3:
      return random.chance(0.5) ? largest : -largest;
    default:
      return (random.unit() - 0.5) * 1e-3;
  }
}

struct Target {
  RowIndex row;
  std::int64_t kv;                   // its kv head
  std::vector<std::int64_t> hidden;  // keys that it does not see
};

// Rows that see nothing of what the target does not see, in heads that read the same keys; and all rows elsewhere.
std::vector<RowPair> unaffected(const Problem& p, const Target& t) {
  const Shape& s = p.source().shape;
  std::vector<RowPair> rows;
  for (const RowPair& pair : all_rows(p)) {
    const RowIndex& at = pair.a;
    const bool reads = at.batch == t.row.batch && at.head / (s.q_heads / s.kv_heads) == t.kv;
    const bool sees = reads && std::any_of(t.hidden.begin(), t.hidden.end(),
                                           [&](std::int64_t j) { return p.visible(at.batch, at.head, at.i, j); });
    if (!sees) rows.push_back(pair);
  }
  return rows;
}

CheckResult check_prefix_forward(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Shape& s = c.shape;
  const Run base = run_case(kernel, c);
  if (!base.ok()) return stopped(base.execution);
  const double largest = facts(formats_for(kernel).storage).max;
  const bool bitwise = promises(kernel, ATTN_PROMISE_ROW_ISOLATED);
  Random random = choices(context, c, 0x70726566);
  Tally tally;
  for (int turn = 0; turn < 6 && s.tq > 0; ++turn) {
    Target t{{random.between(0, s.batch - 1), random.between(0, s.q_heads - 1), random.between(0, s.tq - 1)}, 0, {}};
    t.kv = t.row.head / (s.q_heads / s.kv_heads);
    for (std::int64_t j = 0; j < s.tk; ++j)
      if (!base.problem.visible(t.row.batch, t.row.head, t.row.i, j)) t.hidden.push_back(j);
    if (t.hidden.empty()) continue;
    // One kind of number everywhere in every other turn: a tile of equal extremes is the hardest neighbour.
    const bool uniform = random.chance(0.5);
    const double fixed = any_finite(random, largest);
    const Run run = run_with(kernel, c, [&](Problem& p) {
      for (std::int64_t j : t.hidden) {
        const std::int64_t row = (t.row.batch * s.kv_heads + t.kv) * s.tk + j;
        for (std::int64_t e = 0; e < s.d_qk; ++e)
          p.set_input("k", row * s.d_qk + e, uniform ? fixed : any_finite(random, largest));
        for (std::int64_t e = 0; e < s.d_v; ++e)
          p.set_input("v", row * s.d_v + e, uniform ? fixed : any_finite(random, largest));
      }
    });
    if (!run.ok()) return stopped(run.execution);
    same_rows(tally, kernel, base.problem, run.problem, unaffected(base.problem, t), bitwise,
              "with other finite values at keys it does not see");
  }
  return tally.finish("every row sees every key");
}

CheckResult check_prefix_step(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Run base = run_case(kernel, c);
  if (!base.ok()) return stopped(base.execution);
  const std::int64_t rows = c.shape.tq, keys = c.shape.tk, d_v = c.shape.d_v;
  const auto scores = base.problem.input("scores");
  const bool bitwise = promises(kernel, ATTN_PROMISE_ROW_ISOLATED);
  const double largest = facts(formats_for(kernel).storage).max;
  Random random = choices(context, c, 0x70726566);
  Tally tally;
  for (std::int64_t r = 0; r < std::min<std::int64_t>(rows, 6); ++r) {
    std::vector<std::int64_t> hidden;
    for (std::int64_t j = 0; j < keys; ++j)
      if (scores[r * keys + j] == -kInfinity) hidden.push_back(j);
    if (hidden.empty()) continue;
    const Run run = run_with(kernel, c, [&](Problem& p) {
      for (std::int64_t j : hidden)
        for (std::int64_t e = 0; e < d_v; ++e) p.set_input("v", j * d_v + e, any_finite(random, largest));
    });
    if (!run.ok()) return stopped(run.execution);
    if (!bitwise) {
      tally.absorb(judge_problem(kernel, run.problem, context));
      continue;
    }
    const auto a = base.problem.output_bits("acc"), b = run.problem.output_bits("acc");
    const auto va = base.problem.output("acc"), vb = run.problem.output("acc");
    for (std::int64_t e = r * d_v; e < (r + 1) * d_v; ++e)
      tally.same(b[e], a[e], vb[e], va[e],
                 [&] { return place("acc", r, e - r * d_v) + " with other finite values at keys it does not see"; });
  }
  return tally.finish("every row sees every key");
}

CheckResult check_prefix(const Case& c, const Kernel& kernel, const LawContext& context) {
  return c.op == Op::step ? check_prefix_step(c, kernel, context) : check_prefix_forward(c, kernel, context);
}

// A step case whose scores block some keys: for all rows (whole) or for some of them.
void block_keys(Case& c, Random& random, bool whole) {
  at_least(c.shape.tq, 2, random);
  at_least(c.shape.tk, 2, random, 12);
  if (!c.values.tensors.empty()) return;
  auto values = make_values(c);
  auto& scores = values["scores"];
  for (std::int64_t j = 0; j < c.shape.tk; ++j) {
    if (!random.chance(0.4)) continue;
    for (std::int64_t r = 0; r < c.shape.tq; ++r)
      if (whole || random.chance(0.6)) scores[r * c.shape.tk + j] = -kInfinity;
  }
  set_literal(c, "scores", std::move(scores));
}

void shape_poison(Case& c, Random& random) {
  if (c.op == Op::step) return block_keys(c, random, true);
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 3, random, 12);
  switch (random.between(0, 3)) {
    case 0:
      c.mask.kv_len.clear();
      for (std::int64_t b = 0; b < c.shape.batch; ++b) c.mask.kv_len.push_back(random.between(0, c.shape.tk - 1));
      break;
    case 1:
      c.mask.causal = Causal::top_left;
      if (c.shape.tq >= c.shape.tk) c.shape.tq = random.between(1, c.shape.tk - 1);
      break;
    case 2:
      c.k_layout.row_padding = random.between(1, 9);
      c.v_layout.row_padding = random.between(1, 9);
      c.v_layout.head_padding = random.between(0, 3);
      c.q_layout.row_padding = random.between(0, 5);
      break;
    default:
      c.mask.visible = MaskTensor{"random", random.bits() >> 40, 0.2, {c.shape.batch, 1, 1, c.shape.tk}, {}};
      break;
  }
}

void shape_prefix(Case& c, Random& random) {
  if (c.op == Op::step) return block_keys(c, random, false);
  at_least(c.shape.tq, 2, random);
  at_least(c.shape.tk, 2, random, 20);
  if (random.chance(0.75))
    c.mask.causal = random.chance(0.5) ? Causal::top_left : Causal::bottom_right;
  else
    c.mask.visible = MaskTensor{"random", random.bits() >> 40, 0.5, {}, {}};
}

}  // namespace

Law poison_law() {
  return {"poison", "Whatever stands at keys that nobody sees and in padding changes no bit.", why_not, check_poison,
          shape_poison};
}

Law causal_prefix_law() {
  return {"causal-prefix",
          "A row's bits do not depend on finite values at keys that it does not see, whoever else sees them.", why_not,
          check_prefix, shape_prefix};
}

}  // namespace attest
