// fully-masked-row: the class of bug reported most often in public kernels.
#include <cmath>
#include <limits>

#include "oracle/recipe.h"
#include "properties/laws/common.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string why_not(const Case& c, const Kernel& kernel) {
  if (c.op == Op::merge) return "a merge has no keys";
  return why_not_any(c, kernel);
}

bool sees_nothing(const Problem& p, const RowIndex& at) {
  for (std::int64_t j = 0; j < p.source().shape.tk; ++j)
    if (p.visible(at.batch, at.head, at.i, j)) return false;
  return true;
}

// Exactly 0 and exactly -inf (or what the Contract says of an empty LSE), in every row without a visible key.
void check_forward_rows(Tally& tally, const Kernel& kernel, const Problem& p) {
  const double empty = kernel.abi->contract.empty_lse == ATTN_EMPTY_LSE_POS_INF ? kInfinity : -kInfinity;
  const auto o = p.output("o");
  const auto lse = p.has_output("lse") ? p.output("lse") : std::vector<double>{};
  for (const RowPair& pair : all_rows(p)) {
    if (!sees_nothing(p, pair.a)) continue;
    for (std::int64_t e = lse.empty() ? 0 : -1; e < p.source().shape.d_v; ++e) {
      const double got = e < 0 ? lse[lse_index(p, pair.a)] : o[o_index(p, pair.a, e)], want = e < 0 ? empty : 0;
      if (got == want)
        tally.note(Verdict::pass, "");
      else
        tally.fail(place(pair.a, e), "a row without visible keys must give O = 0 and the empty LSE, exactly", got,
                   want);
    }
  }
}

CheckResult check_forward(const Case& c, const Kernel& kernel, const LawContext& context) {
  // The same rows under other tilings: they fall into other tiles, first, middle and last.
  Case x = frozen(c, kernel);
  Random random = choices(context, c, 0x6d61736b);
  Tally tally;
  for (int n = 0; n < 3; ++n) {
    if (n > 0) {
      x.tiling.block_q = random.between(1, std::max<std::int64_t>(c.shape.tq, 1));
      x.tiling.block_k = n == 1 ? 1 : random.between(1, c.shape.tk + 1);
      x.tiling.splits = random.between(0, 4);
    }
    const Run run = run_case(kernel, n == 0 ? c : x);
    if (run.execution.status == Outcome::rejected && n > 0) continue;
    if (!run.ok()) return stopped(run.execution);
    check_forward_rows(tally, kernel, run.problem);
    // Their neighbours in the same tile must not suffer.
    if (n == 0 && tally.elements() > 0) tally.absorb(judge_problem(kernel, run.problem, context));
  }
  return tally.finish("every row sees a key");
}

// A step whose scores are all -inf leaves the state as it was: e^0 = 1 exactly, and nothing is added.
CheckResult check_step(const Case& c, const Kernel& kernel, const LawContext&) {
  const Run run = run_case(kernel, c);
  if (!run.ok()) return stopped(run.execution);
  const Problem& p = run.problem;
  const auto scores = p.input("scores");
  Tally tally;
  for (std::int64_t r = 0; r < c.shape.tq; ++r) {
    bool masked = true;
    for (std::int64_t j = 0; j < c.shape.tk; ++j) masked &= scores[r * c.shape.tk + j] == -kInfinity;
    if (!masked) continue;
    for (const std::string& tensor : outputs_of(p)) {
      const auto got = p.output(tensor);
      const auto want = p.input(tensor);
      const std::int64_t width = tensor == "acc" ? c.shape.d_v : 1;
      for (std::int64_t e = 0; e < width; ++e) {
        const double g = got[r * width + e], w = want[r * width + e];
        if (g == w || (std::isnan(g) && std::isnan(w)))
          tally.note(Verdict::pass, "");
        else
          tally.fail(place(tensor, r, width > 1 ? e : -1),
                     "a block without visible keys must leave the state as it was", g, w);
      }
    }
  }
  return tally.finish("every row sees a key");
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  return c.op == Op::step ? check_step(c, kernel, context) : check_forward(c, kernel, context);
}

// The values of a step case with some rows blocked; every other of them starts from the empty state.
void mask_rows(Case& c, Random& random) {
  at_least(c.shape.tq, 2, random);
  at_least(c.shape.tk, 1, random);
  c.values.tensors.clear();
  auto values = make_values(c);
  for (std::int64_t r = 0; r < c.shape.tq; ++r) {
    if (r > 0 && random.chance(0.5)) continue;
    for (std::int64_t j = 0; j < c.shape.tk; ++j) values["scores"][r * c.shape.tk + j] = -kInfinity;
    if (random.chance(0.5)) continue;
    values["m"][r] = -kInfinity;
    values["l"][r] = 0;
    if (c.state != StateKind::ml)
      for (std::int64_t e = 0; e < c.shape.d_v; ++e) values["acc"][r * c.shape.d_v + e] = 0;
  }
  for (auto& [tensor, numbers] : values) c.values.tensors[tensor] = TensorValues{std::move(numbers), ""};
}

void shape(Case& c, Random& random) {
  if (c.op == Op::step) return mask_rows(c, random);
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random);
  switch (random.between(0, 3)) {
    case 0:
      c.mask.causal = Causal::bottom_right;
      c.shape.tq = c.shape.tk + random.between(1, 5);
      break;
    case 1:
      c.mask.kv_len.assign(c.shape.batch, 0);
      break;
    case 2:
      c.mask.visible = MaskTensor{"row-empty", random.bits() >> 40, 0.5, {}, {}};
      break;
    default:
      c.mask.additive = MaskTensor{"row-empty", random.bits() >> 40, 0.5, {}, {}};
      break;
  }
}

}  // namespace

Law fully_masked_row_law() {
  return {"fully-masked-row",
          "A row without visible keys gives O = 0 and LSE = -inf, wherever its tiles fall; a step leaves its state.",
          why_not, check, shape};
}

}  // namespace attest
