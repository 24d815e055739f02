// swings: scores that move by thousands between neighbouring blocks. Rescaling by e^(m_old - m_new) must neither
// overflow nor keep what should have vanished.
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/fold.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Pattern { rising, falling, alternating, sawtooth };
constexpr Pattern kPatterns[] = {Pattern::rising, Pattern::falling, Pattern::alternating, Pattern::sawtooth};
const char* const kNames[] = {"rising", "falling", "alternating", "sawtooth"};

// In units of the swing's height, for block n of `blocks`.
double level(Pattern p, std::int64_t n, std::int64_t blocks) {
  switch (p) {
    case Pattern::rising:
      return static_cast<double>(2 * n - blocks + 1);
    case Pattern::falling:
      return static_cast<double>(blocks - 1 - 2 * n);
    case Pattern::alternating:
      return n % 2 == 0 ? 1 : -1;
    case Pattern::sawtooth:
      return static_cast<double>(n % 3) - 1;
  }
  return 0;
}

std::int64_t swing_block(const Case& c, Random& random) {
  // Many short blocks: staircases that fall by tens of thousands, where narrow exponents wrap.
  if (random.chance(0.3)) return random.between(1, std::max<std::int64_t>(c.shape.tk / 16, 1));
  if (c.tiling.block_k > 0 && random.chance(0.6)) return c.tiling.block_k;
  return random.between(1, std::max<std::int64_t>(c.shape.tk / 2, 1));
}

// Coordinate 0 carries the swing: q is 1 there, k moves by a power of two times the level, so that the score moves by
// at least 1000 in either direction whatever the scale, and the product is exact.
Case swung_forward(const Case& c, Pattern pattern, std::int64_t block, double largest) {
  Case x = c;
  Shape& s = x.shape;
  const double scale = c.effective_scale();
  auto& tensors = x.values.tensors;
  tensors["k"], tensors["q"];  // both there before either is held
  auto& q = tensors.at("q").literal;
  auto& k = tensors.at("k").literal;
  for (std::size_t n = 0; n < q.size(); n += s.d_qk) q[n] = 1;
  // With a scale that is tiny for the format no product gets that far: then as high as the format goes.
  const double most = std::exp2(std::floor(std::log2(largest)));
  double height = std::min(std::exp2(std::ceil(10 - std::log2(scale))), most);
  const std::int64_t blocks = std::max<std::int64_t>((s.tk + block - 1) / block, 1);
  // Staircases of many blocks would leave the format: their steps become smaller, never below 64.
  const double highest = static_cast<double>(std::max<std::int64_t>(blocks - 1, 1));
  while (height * highest > largest && height * scale > 64) height /= 2;
  for (std::size_t n = 0; n < k.size(); n += s.d_qk) {
    const std::int64_t j = static_cast<std::int64_t>(n) / s.d_qk % s.tk;
    // What stood there stays on top: keys of a block then differ a little, far from 0, where a rounded product shows.
    k[n] = std::clamp(height * level(pattern, j / block, blocks) + k[n], -largest, largest);
  }
  return x;
}

CheckResult check_forward(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case base = frozen(c, kernel);
  if (base.values.tensors.count("q") == 0 || base.values.tensors.count("k") == 0)
    return Tally().finish("the problem has no rows or no keys");
  Random random = choices(context, c, 0x7377696e);
  LawContext fewer = context;
  fewer.max_rows = std::max<std::int64_t>(context.max_rows / 4, 16);
  Tally tally;
  for (std::size_t n = 0; n < std::size(kPatterns); ++n) {
    const Case x =
        swung_forward(base, kPatterns[n], swing_block(c, random), facts(formats_for(kernel).storage).max / 2);
    const Run run = run_case(kernel, x);
    if (!run.ok()) return stopped(run.execution);
    CheckResult r = judge_problem(kernel, run.problem, fewer);
    if (r.outcome == Outcome::fail) r.finding.where += std::string(" under a ") + kNames[n] + " swing";
    tally.absorb(r);
  }
  return tally.finish("the problem has no output elements");
}

CheckResult check_step(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Problem p(c, formats_for(kernel));
  const StepInputs in(p);
  Random random = choices(context, c, 0x7377696e);
  Tally tally;
  for (Pattern pattern : kPatterns) {
    StepInputs x = in;
    const std::int64_t block = swing_block(c, random);
    const std::int64_t blocks = std::max<std::int64_t>((in.keys + block - 1) / block, 1);
    for (std::int64_t n = 0; n < in.rows * in.keys; ++n)
      if (x.scores[n] != -kInfinity) x.scores[n] += 1024 * level(pattern, n % in.keys / block, blocks);
    // Written over the case once, so that the numbers are those of the accumulator's format.
    Case rounded = c;
    if (!x.scores.empty()) set_literal(rounded, "scores", x.scores);
    const StepInputs exact(Problem(rounded, formats_for(kernel)));
    x.scores = exact.scores;
    const Execution run = judge_fold(tally, kernel, c, x, even_cuts(x.keys, block));
    if (run.status != Outcome::pass) return stopped(run);
  }
  return tally.finish("the problem has no output elements");
}

// Parts whose maxima are thousands apart: the weight of one of them is 0.
CheckResult check_merge(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case base = frozen(c, kernel);
  Tally tally;
  for (Pattern pattern : kPatterns) {
    Case x = base;
    auto& m = x.values.tensors["m"].literal;
    for (std::size_t n = 0; n < m.size(); ++n)
      m[n] +=
          1024 * level(pattern, static_cast<std::int64_t>(n) / std::max<std::int64_t>(c.shape.tq, 1), c.shape.parts);
    Problem p(x, formats_for(kernel));
    for (std::int64_t n = 0; n + 1 < c.shape.parts; ++n) {
      p.select_parts(n, n + 1);
      p.prefill(0xA5);
      const Execution run = execute(kernel, p);
      if (run.status != Outcome::pass) return stopped(run);
      tally.absorb(judge_problem(kernel, p, context));
    }
  }
  return tally.finish("the problem has no output elements");
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  if (c.op == Op::step) return check_step(c, kernel, context);
  return c.op == Op::merge ? check_merge(c, kernel, context) : check_forward(c, kernel, context);
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  if (c.op == Op::merge) return;
  at_least(c.shape.tk, 4, random, 20);
  // The bound allows a rounding of the score for each coordinate, and few of them leave the exponent's own in sight.
  if (random.chance(0.3)) c.shape.d_qk = random.between(1, 2);
  if (c.tiling.block_k > c.shape.tk) c.tiling.block_k = random.between(1, c.shape.tk);
}

}  // namespace

Law swings_law() {
  return {"swings",
          "Under score swings of +-1000 and beyond between neighbouring blocks outputs stay finite and within bounds.",
          why_not_any, check, shape};
}

}  // namespace attest
