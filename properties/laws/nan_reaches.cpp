// nan-reaches: a NaN is a message from upstream. It must arrive, and nowhere else.
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

enum class Expect { same, nan, anything };

struct Place {
  char tensor;  // q, k or v
  std::int64_t batch, head, row, column;
};

Place random_place(const Shape& s, char tensor, Random& random) {
  Place at{tensor, random.between(0, s.batch - 1), 0, 0, 0};
  at.head = random.between(0, (tensor == 'q' ? s.q_heads : s.kv_heads) - 1);
  at.row = random.between(0, (tensor == 'q' ? s.tq : s.tk) - 1);
  at.column = random.between(0, (tensor == 'v' ? s.d_v : s.d_qk) - 1);
  return at;
}

std::int64_t index_of(const Shape& s, const Place& at) {
  const std::int64_t heads = at.tensor == 'q' ? s.q_heads : s.kv_heads, rows = at.tensor == 'q' ? s.tq : s.tk;
  const std::int64_t columns = at.tensor == 'v' ? s.d_v : s.d_qk;
  return ((at.batch * heads + at.head) * rows + at.row) * columns + at.column;
}

bool sees_something(const Problem& p, const RowIndex& at) {
  for (std::int64_t j = 0; j < p.source().shape.tk; ++j)
    if (p.visible(at.batch, at.head, at.i, j)) return true;
  return false;
}

// What the NaN makes of output element e (-1: LSE) of a row.
Expect expectation(const Kernel& kernel, const Problem& p, const Place& nan, const RowIndex& at, std::int64_t e) {
  const Shape& s = p.source().shape;
  if (nan.batch != at.batch) return Expect::same;
  if (nan.tensor == 'q')
    return nan.head == at.head && nan.row == at.i && sees_something(p, at) ? Expect::nan : Expect::same;
  if (nan.head != at.head / (s.q_heads / s.kv_heads)) return Expect::same;
  if (!p.visible(at.batch, at.head, at.i, nan.row)) {
    // 0 * NaN in a tile that others see: the Contract says whether it stays out. A row that sees nothing is exact.
    const bool free = kernel.abi->contract.isolates_nonfinite == ATTN_ISOLATES_HEAD &&
                      p.key_seen(at.batch, nan.head, nan.row) && sees_something(p, at);
    return free ? Expect::anything : Expect::same;
  }
  if (nan.tensor == 'k') return Expect::nan;
  return e == nan.column ? Expect::nan : Expect::same;
}

CheckResult check_forward(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Shape& s = c.shape;
  if (s.tq == 0 || s.tk == 0) return Tally().finish("the problem has no rows or no keys");
  const Run clean = run_case(kernel, c);
  if (!clean.ok()) return stopped(clean.execution);
  const bool bitwise = promises(kernel, ATTN_PROMISE_DETERMINISTIC);
  const auto o0 = clean.problem.output("o");
  const bool has_lse = clean.problem.has_output("lse");
  const auto l0 = has_lse ? clean.problem.output("lse") : std::vector<double>{};
  Random random = choices(context, c, 0x6e616e);
  Tally tally;
  for (const char tensor : {'q', 'k', 'v', 'k', 'v'}) {
    const Place nan = random_place(s, tensor, random);
    const Run run =
        run_with(kernel, c, [&](Problem& p) { p.set_input(std::string(1, tensor), index_of(s, nan), kNan); });
    if (!run.ok()) return stopped(run.execution);
    const auto o = run.problem.output("o");
    const auto l = has_lse ? run.problem.output("lse") : std::vector<double>{};
    for (const RowPair& pair : all_rows(run.problem)) {
      const RowIndex& at = pair.a;
      Evaluated row;
      if (!bitwise) row = evaluate_row(kernel, clean.problem, at);
      for (std::int64_t e = has_lse ? -1 : 0; e < s.d_v; ++e) {
        const double got = e < 0 ? l[lse_index(run.problem, at)] : o[o_index(run.problem, at, e)];
        const double before = e < 0 ? l0[lse_index(run.problem, at)] : o0[o_index(run.problem, at, e)];
        const auto where = [&] {
          return place(at, e) + " with a NaN in " + tensor + "[" + std::to_string(nan.batch) + "," +
                 std::to_string(nan.head) + "," + std::to_string(nan.row) + "," + std::to_string(nan.column) + "]";
        };
        switch (expectation(kernel, run.problem, nan, at, e)) {
          case Expect::anything:
            break;
          case Expect::nan:
            if (std::isnan(got))
              tally.note(Verdict::pass, "");
            else
              tally.fail(where(), "a NaN that it sees did not reach it", got, kNan);
            break;
          case Expect::same:
            if (!bitwise) {
              const double b = (e < 0 ? row.bound.lse : row.bound.o[e]).deterministic;
              within_both(tally, got, b, before, b, 0, where);
            } else if (got == before || (std::isnan(got) && std::isnan(before))) {
              tally.note(Verdict::pass, "");
            } else {
              tally.fail(where(), "a NaN that it does not see reached it", got, before);
            }
        }
      }
    }
  }
  return tally.finish("the problem has no output elements");
}

// Step: a NaN score reaches l and acc of its row, a NaN in v its column of the rows that see the key. What the maximum
// of a NaN is, IEEE leaves open. Merge: a NaN in m or l reaches l and acc, one in acc its element.
CheckResult check_state(const Case& c, const Kernel& kernel, const LawContext& context) {
  const std::int64_t rows = c.shape.tq, keys = c.shape.tk, d_v = c.shape.d_v;
  const bool step = c.op == Op::step, has_acc = c.state != StateKind::ml, has_l = c.state != StateKind::olse;
  if (rows == 0 || (step && keys == 0)) return Tally().finish("the problem has no rows or no keys");
  const Run clean = run_case(kernel, c);
  if (!clean.ok()) return stopped(clean.execution);
  Random random = choices(context, c, 0x6e616e);
  Tally tally;
  std::vector<std::string> tensors{step ? "scores" : "m"};
  if (has_acc) tensors.emplace_back(step ? "v" : "acc");
  for (const std::string& tensor : tensors) {
    const std::int64_t r = random.between(0, rows - 1), j = step ? random.between(0, keys - 1) : 0;
    const std::int64_t e = has_acc ? random.between(0, d_v - 1) : 0;
    const bool whole_row = tensor == "scores" || tensor == "m";
    const std::int64_t index = tensor == "scores" ? r * keys + j
                               : tensor == "v"    ? j * d_v + e
                               : tensor == "m"    ? r
                                                  : r * d_v + e;
    // An empty part has nothing to say, and beside an empty part the other is returned as it is.
    const std::int64_t other = c.shape.parts > 1 ? rows + r : r;  // a part alone is merged with itself
    if (!step && (clean.problem.input("m")[r] == -kInfinity || clean.problem.input("m")[other] == -kInfinity)) continue;
    const auto scores = step ? clean.problem.input("scores") : std::span<const double>{};
    if (tensor == "scores" && scores[index] == -kInfinity) continue;
    const Run run = run_with(kernel, c, [&](Problem& p) { p.set_input(tensor, index, kNan); });
    if (!run.ok()) return stopped(run.execution);
    const auto check = [&](const std::string& output, std::int64_t row, std::int64_t column, double got,
                           double before) {
      bool reached, free = false;
      if (whole_row) {
        reached = row == r;
      } else {
        const bool sees = step ? scores[row * keys + j] != -kInfinity : row == r;
        reached = sees && output == "acc" && column == e;
        // As in a tile: 0 * NaN for a blocked key that other rows see.
        free = step && !sees && output == "acc" && column == e &&
               kernel.abi->contract.isolates_nonfinite == ATTN_ISOLATES_HEAD;
      }
      if (free || (whole_row && reached && output == "m" && has_l)) return;
      const auto where = [&] {
        return place(output, row, column) + " with a NaN in " + tensor + "[" + std::to_string(index) + "]";
      };
      if (reached ? std::isnan(got) : got == before || (std::isnan(got) && std::isnan(before)))
        tally.note(Verdict::pass, "");
      else
        tally.fail(where(), reached ? "a NaN that it sees did not reach it" : "a NaN that it does not see reached it",
                   got, before);
    };
    for (const std::string& output : outputs_of(run.problem)) {
      const auto got = run.problem.output(output), before = clean.problem.output(output);
      const std::int64_t width = output == "acc" ? d_v : 1;
      for (std::int64_t n = 0; n < rows * width; ++n)
        check(output, n / width, output == "acc" ? n % width : -1, got[n], before[n]);
    }
  }
  return tally.finish("no place for a NaN was seen");
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  return c.op == Op::forward ? check_forward(c, kernel, context) : check_state(c, kernel, context);
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random, 4);
  at_least(c.shape.tk, 1, random, 8);
}

}  // namespace

Law nan_reaches_law() {
  return {"nan-reaches", "A NaN goes exactly where it must: never swallowed, never beyond what sees it.", why_not_any,
          check, shape};
}

}  // namespace attest
