// merge-identity, merge-commutes, merge-associates: the algebra of partial softmax states.
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Runs merge(part x, part y) of a problem that is kept: only the selection changes.
Execution merge_parts(const Kernel& kernel, Problem& p, std::int64_t x, std::int64_t y) {
  p.select_parts(x, y);
  p.prefill(0xA5);
  return execute(kernel, p);
}

// Writes one state into a part of the problem.
void write_part(Problem& p, std::int64_t part, const StateValues& s) {
  const std::int64_t rows = s.rows, d_v = s.d_v;
  for (std::int64_t r = 0; r < rows; ++r) {
    p.set_input("m", part * rows + r, s.m[r]);
    if (!s.l.empty()) p.set_input("l", part * rows + r, s.l[r]);
    for (std::int64_t e = 0; e < d_v && !s.acc.empty(); ++e)
      p.set_input("acc", (part * rows + r) * d_v + e, s.acc[r * d_v + e]);
  }
}

StateValues part_of(Problem& p, std::int64_t part) {
  p.select_parts(part, part);
  return read_state(p.abi().a);
}

StateValues empty_like(const StateValues& s, const attn_contract& contract, StateKind kind) {
  StateValues out = s;
  const bool positive = kind == StateKind::olse && contract.empty_lse == ATTN_EMPTY_LSE_POS_INF;
  out.m.assign(s.m.size(), positive ? kInfinity : -kInfinity);
  out.l.assign(s.l.size(), 0.0);
  out.acc.assign(s.acc.size(), 0.0);
  return out;
}

void equals(Tally& tally, const StateValues& got, const StateValues& want, const std::string& label) {
  const auto each = [&](const std::vector<double>& g, const std::vector<double>& w, const char* tensor) {
    for (std::size_t n = 0; n < w.size(); ++n)
      if (g[n] == w[n] || (std::isnan(g[n]) && std::isnan(w[n])))
        tally.note(Verdict::pass, "");
      else
        tally.fail(std::string(tensor) + "[" + std::to_string(n) + "] of " + label,
                   "must be the other state, bit for bit", g[n], w[n]);
  };
  each(got.m, want.m, "m");
  each(got.l, want.l, "l");
  each(got.acc, want.acc, "acc");
}

// Room for more states behind those of the case.
Problem with_slots(const Case& c, const Kernel& kernel, std::int64_t slots) {
  const Problem original(c, formats_for(kernel));
  Case x = frozen(c, kernel);
  x.shape.parts = c.shape.parts + slots;
  for (auto& [tensor, values] : x.values.tensors)
    values.literal.resize(values.literal.size() / c.shape.parts * x.shape.parts, 0.0);
  return Problem(x, formats_for(kernel));
}

CheckResult check_identity(const Case& c, const Kernel& kernel, const LawContext&) {
  if (c.shape.tq == 0) return Tally().finish("the problem has no rows");
  Problem p = with_slots(c, kernel, 2);
  const std::int64_t parts = c.shape.parts, empty = parts;
  const StateValues nothing = empty_like(part_of(p, 0), kernel.abi->contract, c.state);
  write_part(p, empty, nothing);
  write_part(p, empty + 1, nothing);
  Tally tally;
  const auto one = [&](std::int64_t x, std::int64_t y, std::int64_t want, const char* label) {
    const StateValues expected = part_of(p, want);
    const Execution run = merge_parts(kernel, p, x, y);
    if (run.status == Outcome::pass) equals(tally, output_state(p), expected, label);
    return run;
  };
  for (std::int64_t x = 0; x < parts; ++x) {
    if (auto run = one(x, empty, x, "merge(state, empty)"); run.status != Outcome::pass) return stopped(run);
    if (auto run = one(empty, x, x, "merge(empty, state)"); run.status != Outcome::pass) return stopped(run);
  }
  if (auto run = one(empty, empty + 1, empty, "merge(empty, empty)"); run.status != Outcome::pass) return stopped(run);
  return tally.finish("the problem has no rows");
}

CheckResult check_commutes(const Case& c, const Kernel& kernel, const LawContext& context) {
  Problem p(c, formats_for(kernel));
  Tally tally;
  for (std::int64_t x = 0; x + 1 < c.shape.parts; ++x) {
    const std::int64_t y = x + 1;
    if (auto run = merge_parts(kernel, p, x, y); run.status != Outcome::pass) return stopped(run);
    const StateValues xy = output_state(p);
    if (!promises(kernel, ATTN_PROMISE_COMMUTATIVE_MERGE)) tally.absorb(judge_problem(kernel, p, context));
    if (auto run = merge_parts(kernel, p, y, x); run.status != Outcome::pass) return stopped(run);
    if (promises(kernel, ATTN_PROMISE_COMMUTATIVE_MERGE)) {
      equals(tally, output_state(p), xy, "merge(b, a) against merge(a, b)");
    } else {
      tally.absorb(judge_problem(kernel, p, context));
    }
  }
  return tally.finish("the problem has no rows");
}

// A node of a merge tree: where its state stands, which leaves it covers, and what its rows may be off by.
struct Node {
  std::int64_t slot;
  std::vector<std::int64_t> leaves;
  std::vector<StateBound> bound;
};

// The definition over these leaves.
MergeRow over_leaves(StateKind kind, const std::vector<StateValues>& parts, const std::vector<std::int64_t>& leaves,
                     std::int64_t r) {
  MergeRow row;
  row.kind = kind;
  row.d_v = parts[0].d_v;
  for (std::int64_t n : leaves) {
    const StateValues& s = parts[n];
    row.m.push_back(s.m[r]);
    if (!s.l.empty()) row.l.push_back(s.l[r]);
    if (!s.acc.empty()) row.acc.push_back(s.acc_row(r));
  }
  return row;
}

// The truth of a node as plain numbers, which merge_bound asks for.
StateValues approximate(StateKind kind, const std::vector<StateValues>& parts, const Node& node) {
  StateValues s = parts[0];
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const StateTruth t = merge_truth(over_leaves(kind, parts, node.leaves, r), Tier::double_double);
    s.m[r] = truth_value(t.m);
    if (!s.l.empty()) s.l[r] = truth_value(t.l);
    for (std::int64_t e = 0; e < s.d_v && !s.acc.empty(); ++e) s.acc[r * s.d_v + e] = truth_value(t.acc[e]);
  }
  return s;
}

CheckResult check_tree(const Case& c, const Kernel& kernel, Random& random, int kind_of_tree, Tally& tally) {
  const std::int64_t parts = c.shape.parts, rows = c.shape.tq;
  Problem p = with_slots(c, kernel, parts - 1);
  std::vector<StateValues> leaf;
  std::vector<Node> open;
  for (std::int64_t n = 0; n < parts; ++n) {
    leaf.push_back(part_of(p, n));
    open.push_back({n, {n}, std::vector<StateBound>(rows, exact_state(leaf[n].d_v))});
  }
  // Order of the leaves: as given for the left fold, any otherwise.
  if (kind_of_tree != 0)
    for (std::size_t n = open.size(); n-- > 1;)
      std::swap(open[n], open[random.between(0, static_cast<std::int64_t>(n))]);
  std::int64_t slot = parts;
  while (open.size() > 1) {
    // 0, 1: left fold; 2: any two neighbours or strangers, in any order.
    std::size_t x = 0, y = 1;
    if (kind_of_tree == 2) {
      x = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(open.size()) - 1));
      do {
        y = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(open.size()) - 1));
      } while (y == x);
    }
    const Node a = open[x], b = open[y];
    if (auto run = merge_parts(kernel, p, a.slot, b.slot); run.status != Outcome::pass) return stopped(run);
    const StateValues got = output_state(p);
    const StateValues va = approximate(c.state, leaf, a), vb = approximate(c.state, leaf, b);
    Node both{slot, a.leaves, {}};
    both.leaves.insert(both.leaves.end(), b.leaves.begin(), b.leaves.end());
    for (std::int64_t r = 0; r < rows; ++r)
      both.bound.push_back(merge_bound(kernel.abi->contract, merge_side(c.state, va, r, a.bound[r]),
                                       merge_side(c.state, vb, r, b.bound[r])));
    write_part(p, slot++, got);
    open[std::min(x, y)] = both;
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(std::max(x, y)));
  }
  const StateValues got = part_of(p, open[0].slot);
  for (std::int64_t r = 0; r < rows; ++r) {
    const MergeRow row = over_leaves(c.state, leaf, open[0].leaves, r);
    judge_state(tally, got, r, open[0].bound[r], [&](Tier tier) { return merge_truth(row, tier); });
  }
  return {};
}

CheckResult check_associates(const Case& c, const Kernel& kernel, const LawContext& context) {
  Tally tally;
  if (c.shape.tq == 0) return tally.finish("the problem has no rows");
  Random random = choices(context, c, 0x74726565);
  for (int tree = 0; tree < 4; ++tree) {
    const CheckResult r = check_tree(c, kernel, random, std::min(tree, 2), tally);
    if (r.outcome != Outcome::pass) return r;
  }
  return tally.finish("the problem has no rows");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.parts, 2, random);
}

void shape_many(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  c.shape.parts = random.between(3, 9);
}

}  // namespace

Law merge_identity_law() {
  return {"merge-identity",
          "Merge with the empty state returns the other state bit for bit; two empties give the empty state.",
          why_not_merge, check_identity, shape};
}

Law merge_commutes_law() {
  return {"merge-commutes",
          "merge(a, b) and merge(b, a) are the same bits where promised, and both within their bounds everywhere.",
          why_not_merge, check_commutes, shape};
}

Law merge_associates_law() {
  return {"merge-associates", "Any tree, any order and any chunking of merges agrees with the truth within its bound.",
          why_not_merge, check_associates, shape_many};
}

}  // namespace attest
