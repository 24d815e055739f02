#include "properties/hunt/moves.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "oracle/bound.h"
#include "oracle/recipe.h"
#include "properties/evaluate.h"
#include "properties/limits.h"
#include "properties/state.h"

namespace attest::hunting {
namespace {

constexpr std::int64_t kMostKeys = 24, kMostOthers = 4;  // a worst case is read by people

// The tensors that have an axis, and where: what copying or dropping a key, a row, a column comes to.
struct Axis {
  std::int64_t Shape::*extent;
  std::int64_t most;
  std::vector<std::pair<const char*, std::size_t>> tensors;
};

const std::vector<Axis>& axes_of(Op op) {
  static const std::vector<Axis> forward{{&Shape::tk, kMostKeys, {{"k", 2}, {"v", 2}}},
                                         {&Shape::tq, kMostOthers, {{"q", 2}}},
                                         {&Shape::d_qk, kMostOthers, {{"q", 3}, {"k", 3}}},
                                         {&Shape::d_v, kMostOthers, {{"v", 3}}}};
  static const std::vector<Axis> step{{&Shape::tk, kMostKeys, {{"scores", 1}, {"v", 0}}},
                                      {&Shape::tq, kMostOthers, {{"m", 0}, {"l", 0}, {"acc", 0}, {"scores", 0}}},
                                      {&Shape::d_v, kMostOthers, {{"acc", 1}, {"v", 1}}}};
  static const std::vector<Axis> merge{{&Shape::tq, kMostOthers, {{"m", 1}, {"l", 1}, {"acc", 1}}},
                                       {&Shape::d_v, kMostOthers, {{"acc", 2}}}};
  return op == Op::forward ? forward : op == Op::step ? step : merge;
}

// The case with places `sources` of an axis, in that order.
void select(Case& c, const Axis& axis, const std::vector<std::int64_t>& sources) {
  for (const auto& [tensor, dimension] : axis.tensors) {
    const auto shape = input_shape(c, tensor);
    const auto found = c.values.tensors.find(tensor);
    if (shape.size() <= dimension || found == c.values.tensors.end()) continue;
    const auto product = [](const std::int64_t* first, const std::int64_t* last) {
      return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
    };
    const std::int64_t* const its = shape.begin() + dimension;
    const std::int64_t outer = product(shape.begin(), its), inner = product(its + 1, shape.end());
    const std::vector<double> old = std::exchange(found->second.literal, {});
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t from : sources)
        for (std::int64_t n = 0; n < inner; ++n)
          found->second.literal.push_back(old[static_cast<std::size_t>((o * shape[dimension] + from) * inner + n)]);
  }
  c.shape.*axis.extent = static_cast<std::int64_t>(sources.size());
}

void resize(Case& c, Random& random) {
  const Axis& axis = random.pick(axes_of(c.op));
  const std::int64_t n = c.shape.*axis.extent;
  std::vector<std::int64_t> sources;
  for (std::int64_t j = 0; j < n; ++j) sources.push_back(j);
  if (n == 0) return;
  const auto at = sources.begin() + random.between(0, n - 1);
  const std::int64_t from = random.between(0, n - 1);
  const std::int64_t what = random.between(0, 2);
  if (what == 0 && n > 1)
    sources.erase(at);
  else if (what == 1 && n < axis.most)
    sources.insert(at, from);
  else
    *at = from;
  select(c, axis, sources);
  for (std::int64_t& len : c.mask.kv_len) len = std::min(len, c.shape.tk);
}

double changed(double x, const std::vector<double>& others, double u, bool positive, Random& random) {
  const double sign = random.chance(0.5) ? 1 : -1;
  switch (random.between(0, positive ? 3 : 6)) {
    case 0:
    case 1:
      return x * (1 + 2 * u * sign * static_cast<double>(random.between(1, 4)));
    case 2:
      return x * (1 + sign * std::ldexp(random.unit(), -static_cast<int>(random.between(0, 20))));
    case 3:
      return std::ldexp(x, static_cast<int>(sign) * static_cast<int>(random.between(1, random.chance(0.2) ? 24 : 2)));
    case 4:
      return -x;
    case 5:
      return sign * random.pick(others);
    default:
      return x + sign * std::ldexp(1 + random.unit(), static_cast<int>(random.between(-8, 6)));
  }
}

void change_value(Case& c, const Kernel& kernel, Random& random) {
  const auto n = static_cast<std::int64_t>(c.values.tensors.size());
  auto& [tensor, values] = *std::next(c.values.tensors.begin(), random.between(0, n - 1));
  auto& x = values.literal;
  if (x.empty()) return;
  const Formats formats = formats_for(kernel);
  const bool stored = c.op == Op::forward || (c.op == Op::step && tensor == "v");
  const FormatFacts format = facts(stored ? formats.storage : formats.accumulator);
  double& at = x[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(x.size()) - 1))];
  const double y = changed(at, x, format.u, tensor == "l", random);
  // Not beyond half of the format's range: overflow is vacuous.
  if (std::isfinite(at) && std::abs(y) < format.max / 2) at = y;
}

double in_accumulator(double scale, const Kernel& kernel) {
  // Exact in the accumulator's format, so that a kernel which narrows it has no error of its own there.
  return kernel.abi->contract.acc_dtype == ATTN_FP64 ? scale : static_cast<double>(static_cast<float>(scale));
}

void change_scale(Case& c, const Kernel& kernel, Random& random) {
  double s = c.effective_scale();
  const double sign = random.chance(0.5) ? 1 : -1;
  if (random.chance(0.2))
    s = std::ldexp(s, static_cast<int>(sign));
  else
    s *= 1 + sign * std::ldexp(random.unit(), -static_cast<int>(random.between(0, 22)));
  s = in_accumulator(s, kernel);
  if (s > 0x1p-40 && s < 0x1p40) c.scale = s;
}

void change_tiling(Case& c, Random& random) {
  static const std::vector<std::int64_t> blocks{1, 2, 3, 4, 5, 7, 8, 16};
  switch (random.between(0, 2)) {
    case 0:
      c.tiling.block_k = random.pick(blocks);
      break;
    case 1:
      c.tiling.block_q = random.pick(blocks);
      break;
    default:
      c.tiling.splits = random.between(0, 4);
  }
}

void change_mask(Case& c, const Kernel& kernel, Random& random) {
  if (c.op != Op::forward) return;
  if (random.chance(0.5)) {
    c.mask.kv_len.clear();
    if (random.chance(0.5)) c.mask.kv_len.assign(static_cast<std::size_t>(c.shape.batch), c.shape.tk);
  } else if (!needs_causal(kernel)) {
    c.mask.causal = c.mask.causal == Causal::none ? Causal::bottom_right : Causal::none;
  }
}

void louder(Case& c, Random& random) {
  // Larger scores with the same gaps: what is left of the error is that of the scores.
  auto found = c.values.tensors.find(c.op == Op::forward ? "k" : c.op == Op::step ? "scores" : "m");
  if (found == c.values.tensors.end()) return;
  const double shift = std::ldexp(random.chance(0.5) ? 1 : -1, static_cast<int>(random.between(0, 10)));
  for (double& x : found->second.literal) x += shift;
}

}  // namespace

Case frozen(const Kernel& kernel, const Case& c) {
  // Keys that no row sees hold poison in a problem, and their own numbers in the case.
  Case seen = c;
  seen.mask = {};
  const Problem p(seen, formats_for(kernel));
  Case out = c;
  out.values = {};
  out.values.family = "zeros";
  static const std::vector<const char*> names[] = {
      {"m", "l", "acc", "scores", "v"}, {"m", "l", "acc"}, {"q", "k", "v"}};
  for (const char* tensor : names[static_cast<int>(c.op)]) {
    if (input_shape(c, tensor).empty()) continue;
    const auto x = p.input(tensor);
    set_literal(out, tensor, {x.begin(), x.end()});
  }
  return limits_of(kernel).picky ? made_acceptable(with_accepted_dimensions(out, kernel), kernel) : out;
}

Case start_case(const Kernel& kernel, Random& random, OutDType out) {
  Case c = generate_case(kernel, *find_law("encloses"), random, 0);
  const bool causal = c.op == Op::forward && needs_causal(kernel);
  c.mask = {};
  if (causal) c.mask.causal = Causal::bottom_right;
  c.q_layout = c.k_layout = c.v_layout = c.o_layout = {};
  c.tiling.threads = 1;
  c.values = {};
  c.shape = {};
  c.shape.tq = random.between(1, 2);
  c.shape.d_v = random.between(1, 2);
  if (c.op != Op::merge) c.shape.tk = random.between(1, 12);
  if (c.op == Op::forward) {
    c.shape.d_qk = random.between(1, 4);
    c.out = out;
    c.scale = in_accumulator(std::ldexp(1 + random.unit(), static_cast<int>(random.between(-3, 0))), kernel);
  }
  const Family& family = random.pick(families());
  c.values.family = std::string(random.chance(0.3) ? "near-ties" : family.name);
  c.values.seed = random.bits() >> 32;
  if (c.values.family == "near-ties")
    c.values.parameters = {{"gap", std::ldexp(1.0, static_cast<int>(random.between(-10, 1)))},
                           {"level", std::ldexp(1.0, static_cast<int>(random.between(-4, 11)))}};
  if (c.op != Op::forward) c.values.parameters["state"] = 1;
  return frozen(kernel, c);
}

void move(Case& c, const Kernel& kernel, Random& random) {
  const std::int64_t moves = random.between(1, 3);
  for (std::int64_t n = 0; n < moves; ++n) {
    const double what = random.unit();
    if (what < 0.70)
      change_value(c, kernel, random);
    else if (what < 0.80)
      resize(c, random);
    else if (what < 0.90 && c.op == Op::forward)
      change_scale(c, kernel, random);
    else if (what < 0.93)
      change_tiling(c, random);
    else if (what < 0.95)
      change_mask(c, kernel, random);
    else
      louder(c, random);
  }
}

bool weight_beside_tie(Case& c, const Kernel& kernel, std::int64_t i, Random& random) {
  const attn_contract& contract = kernel.abi->contract;
  if (c.op != Op::forward || contract.p_dtype == contract.acc_dtype) return false;
  const Problem p(c, formats_for(kernel));
  const Row row = make_row(p, 0, 0, i);
  if (row.size() < 2) return false;
  const RowStats stats = row_stats(row);
  const double gap = random.pick(stats.gap) / row.scale;
  if (!(gap > 0) || !std::isfinite(gap)) return false;
  const double tie = std::ldexp(1 + facts(dtype_of(contract.p_dtype)).u, -static_cast<int>(random.between(1, 4)));
  const double beside =
      tie * (1 + (random.chance(0.5) ? 1 : -1) * std::ldexp(1, -static_cast<int>(random.between(14, 22))));
  const double scale = in_accumulator(-std::log(beside) / gap, kernel);
  if (!(scale > 0x1p-40 && scale < 0x1p40)) return false;
  c.scale = scale;
  return true;
}

Case weights_case(const Case& c) {
  Case x = c;
  const std::int64_t n = c.shape.tk, heads = c.shape.batch * c.shape.kv_heads;
  x.shape.d_v = n;
  std::vector<double> v(static_cast<std::size_t>(heads * n * n), 0.0);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t j = 0; j < n; ++j) v[static_cast<std::size_t>((h * n + j) * n + j)] = 1;
  set_literal(x, "v", std::move(v));
  x.out = OutDType::accumulator;
  return x;
}

WeightErrors weight_errors(const Kernel& kernel, const Case& weights, std::int64_t i) {
  Problem p(with_accepted_dimensions(weights, kernel), formats_for(kernel));
  WeightErrors out;
  if (execute(kernel, p).status != Outcome::pass) return out;
  const auto o = p.output("o");
  const RowIndex at{0, 0, i};
  const Evaluated row = evaluate_row(kernel, p, at);
  for (std::int64_t j = 0; j < weights.shape.tk; ++j) {
    TruthElement truth;
    const double got = o[o_index(p, at, j)];
    const Judgement judgement = judge_element(kernel.abi->contract, row, j, got, &truth);
    const bool finite = truth.kind == TruthKind::finite && std::isfinite(judgement.ratio);
    out.error.push_back(finite ? (got - truth.hi) - truth.lo : 0);
    out.ratio.push_back(finite ? judgement.ratio : 0);
  }
  return out;
}

void align_values(Case& c, const WeightErrors& errors, std::int64_t e, Random& random) {
  auto& v = c.values.tensors["v"].literal;
  if (errors.error.empty() || e < 0 || e >= c.shape.d_v) return;
  const double least =
      random.chance(0.5) ? 0 : random.unit() * *std::max_element(errors.ratio.begin(), errors.ratio.end());
  const bool same_size = random.chance(0.5);
  for (std::int64_t j = 0; j < c.shape.tk; ++j) {
    double& x = v[static_cast<std::size_t>(j * c.shape.d_v + e)];
    const auto n = static_cast<std::size_t>(j);
    const double size = same_size || x == 0 ? 1 : std::abs(x);
    x = errors.ratio[n] < least ? 0 : std::copysign(size, errors.error[n]);
  }
}

}  // namespace attest::hunting
