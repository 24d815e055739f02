#include "oracle/score_plan.h"

#include <algorithm>
#include <cmath>

#include "oracle/philox.h"
#include "oracle/recipe.h"

namespace attest {

double parameter(const Values& values, std::string_view name) {
  const auto given = values.parameters.find(name);
  if (given != values.parameters.end()) return given->second;
  const Family* const family = find_family(values.family);
  if (family)
    for (const auto& [p, value] : family->parameters)
      if (same_name(p, name)) return value;
  return 0;
}

namespace {

// Level of a key block in units of the magnitude; blocks >= 1.
double swing(int pattern, std::int64_t block, std::int64_t blocks) {
  switch (pattern) {
    case 0:
      return 2 * block < blocks ? -1 : 1;
    case 1:
      return 2 * block < blocks ? 1 : -1;
    case 2:
      return block % 2 == 0 ? -1 : 1;
    default:
      return static_cast<double>(block % 8) - 3.5;  // rises seven times, then falls back: stays bounded
  }
}

}  // namespace

ScorePlan plan_scores(const Case& c) {
  const Values& v = c.values;
  const bool merge = c.op == Op::merge;
  const std::int64_t keys = merge ? c.shape.parts : c.shape.tk;
  const std::int64_t block_k = merge ? 1 : c.tiling.block_k > 0 ? c.tiling.block_k : 16;
  const std::int64_t blocks = keys > 0 ? (keys - 1) / block_k + 1 : 1;
  const auto value = [&](std::string_view name) { return parameter(v, name); };
  const auto is = [&](std::string_view family) { return same_name(v.family, family); };

  ScorePlan plan;
  plan.steered = true;
  plan.noise = value("noise");
  const auto by_block = [&](auto level) {
    plan.delta.resize(static_cast<std::size_t>(keys));
    for (std::int64_t j = 0; j < keys; ++j) plan.delta[static_cast<std::size_t>(j)] = level(j / block_k);
  };
  if (is("swings")) {
    by_block([&](std::int64_t b) { return value("magnitude") * swing(static_cast<int>(value("pattern")), b, blocks); });
  } else if (is("very-negative")) {
    plan.base = -value("level");
  } else if (is("ties")) {
    plan.noise = 1;
    plan.sharing = 0;
  } else if (is("near-ties")) {
    plan.noise = 1;
    plan.sharing = 0;
    plan.base = value("level");
    plan.delta.resize(static_cast<std::size_t>(keys));
    RandomStream steps(v.seed, 0x73746570);
    for (std::size_t j = 0; j < plan.delta.size(); ++j)
      plan.delta[j] = value("gap") * static_cast<double>(steps.bits(j) & 3);
  } else if (is("needle")) {
    plan.delta.resize(static_cast<std::size_t>(keys));
    const double wanted = value("position");
    std::int64_t at = wanted >= 0 ? static_cast<std::int64_t>(std::min(wanted, 0x1p40)) : block_k;
    at = std::min(at, keys - 1);
    if (keys > 0) plan.delta[static_cast<std::size_t>(at)] = value("margin");
  } else if (is("ascending")) {
    by_block([&](std::int64_t b) { return value("step") * static_cast<double>(b); });
  } else if (is("max-then-lower")) {
    by_block([&](std::int64_t b) { return b == 0 ? value("high") : value("low"); });
  } else if (is("lower-then-max")) {
    by_block([&](std::int64_t b) { return b == blocks - 1 ? value("high") : value("low"); });
  } else if (is("exp2-trap")) {
    plan.base = value("level");
    by_block([&](std::int64_t b) { return value("step") * static_cast<double>(b); });
    plan.noise = 1;
    plan.sharing = 0;
  } else if (is("cancelling-v")) {
    plan.noise = 1;
    plan.sharing = 2;
  } else {
    plan.steered = false;
  }
  // Parameters may be huge; products of them must still be numbers.
  plan.base = std::clamp(plan.base, -0x1p1000, 0x1p1000);
  for (double& d : plan.delta) d = std::clamp(d, -0x1p1000, 0x1p1000);
  return plan;
}

double Steering::k(double target) const { return std::clamp(target * unit, -most, most); }

Steering steer(double largest_target, double scale, double most) {
  const double limit = 0.5 * most;
  const double s = std::isfinite(scale) && scale > 0 ? scale : 1;  // a scale that kernels refuse steers nothing
  Steering out;
  out.most = limit;
  out.q = 1;
  const double product = largest_target / s;
  while (out.q * out.q < product && out.q < 0.5 * limit) out.q *= 2;
  out.unit = 1 / (s * out.q);
  if (!std::isfinite(out.unit)) out.unit = limit;
  return out;
}

}  // namespace attest
