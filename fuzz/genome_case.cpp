#include "fuzz/genome_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "oracle/bound.h"
#include "oracle/recipe.h"
#include "properties/shapes.h"

namespace attest::fuzz {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<const char*, 3> kForward{"q", "k", "v"}, kMerge{"m", "l", "acc"};
constexpr std::array<const char*, 5> kStep{"scores", "v", "m", "l", "acc"};

// Multiply-adds that a case may ask for: truth and bound of each cost some 10 ns; of states, of which laws judge every
// row of every tree, 100 ns.
double budget_of(std::uint8_t size, Op op) {
  const double least = op == Op::forward ? 600 : 60;
  return size < kMediumSize ? least : size < kLargeSize ? 5 * least : 50 * least;
}

// A launch and the ways to the device and back take as long as a small check, and a device's tiles are long.
constexpr double kMoreForTiles = 96;

// Halves what is largest until the work fits. One row, one key and one column always do.
void fit(Case& c, double budget) {
  Shape& s = c.shape;
  std::int64_t group = s.q_heads / s.kv_heads;
  while (work_of(c) > budget) {
    std::int64_t* most = &s.tq;
    for (std::int64_t* n : {&s.tk, &s.parts, &s.d_qk, &s.d_v}) {
      // Sequences keep their tile edges longest.
      const bool dimension = n == &s.d_qk || n == &s.d_v;
      if (*n * (dimension ? 4 : 1) > *most) most = n;
    }
    if (s.batch > 1 && *most < 32) most = &s.batch;
    if (s.kv_heads > 1 && *most < 16) most = &s.kv_heads;
    if (group > 1 && *most < 16) most = &group;
    if (*most <= 1) break;
    *most = (*most + 1) / 2;
    s.q_heads = s.kv_heads * group;
  }
}

Shape shape_of(const Genome& g, Op op, const Limited& limited) {
  // A forward case has no parts: what that gene says serves its head dims.
  const auto dimension = [&](Gene gene) -> std::int64_t {
    return limited.dimensions.empty() ? g[gene] : dimension_of(g[gene], g[Gene::parts] > 2, limited);
  };
  Shape s;
  s.tq = length_of(g[Gene::tq], info(Gene::tq).hi, limited.tile_q);
  s.d_v = dimension(Gene::d_v);
  if (op == Op::merge) {
    s.parts = g[Gene::parts];
    return s;
  }
  s.tk = length_of(g[Gene::tk], info(Gene::tk).hi, limited.tile_k) << g[Gene::tk_doublings];
  if (op == Op::step) return s;
  s.d_qk = dimension(Gene::d_qk);
  s.batch = g[Gene::batch];
  s.kv_heads = g[Gene::kv_heads];
  s.q_heads = s.kv_heads * g[Gene::group];
  return s;
}

// Offsets of 16 bits end at 2^16 elements.
Shape long_shape(const Genome& g, const Limited& limited) {
  Shape s;
  s.d_qk = 32 + g[Gene::d_qk];
  s.d_v = 32 + g[Gene::d_v];
  if (!limited.dimensions.empty()) {
    const Shape taken = shape_of(g, Op::forward, limited);
    s.d_qk = taken.d_qk;
    s.d_v = taken.d_v;
  }
  s.tk = (std::int64_t{1} << 16) / std::max(s.d_qk, s.d_v) + 1 + g[Gene::tk];
  return s;
}

Tiling tiling_of(const Genome& g) {
  Tiling t;
  t.block_q = g[Gene::block_q];
  t.block_k = g[Gene::block_k];
  t.splits = g[Gene::splits];
  t.threads = g[Gene::threads] < 62 ? 1 : g[Gene::threads] - 60;
  return t;
}

MaskTensor mask_of(const Genome& g, Gene first, const Shape& shape) {
  MaskTensor m;
  const auto& patterns = mask_patterns();
  const std::size_t choice = g[first] % (patterns.size() + 1);
  if (choice == 0) return m;
  m.pattern = std::string(patterns[choice - 1]);
  m.seed = g[after(first, 1)];
  m.density = static_cast<double>(g[after(first, 2)]) / 255;
  const std::uint8_t broadcast = g[after(first, 3)];
  if (broadcast & 1) {
    m.mask_shape = {shape.batch, shape.q_heads, shape.tq, shape.tk};
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (broadcast >> (axis + 1) & 1) m.mask_shape[axis] = 1;
  }
  return m;
}

Mask masks_of(const Genome& g, const Shape& shape, std::int64_t tile_k) {
  Mask m;
  m.causal = static_cast<Causal>(g[Gene::causal]);
  if (g[Gene::kv_len])
    for (std::int64_t b = 0; b < shape.batch; ++b)
      m.kv_len.push_back(std::min(
          length_of(g[after(Gene::kv_len_0, static_cast<std::size_t>(b))], info(Gene::kv_len_0).hi, tile_k), shape.tk));
  m.visible = mask_of(g, Gene::visible, shape);
  m.additive = mask_of(g, Gene::additive, shape);
  return m;
}

Layout layout_of(std::uint8_t choice, bool heads) {
  Layout l;
  l.heads_inside = heads && (choice & 1);
  l.row_padding = choice >> 1 & 7;
  l.head_padding = choice >> 4 & 3;
  l.column_step = 1 + (choice >> 6) % 3;
  return l;
}

// A parameter of a value family, walked: small whole numbers, or the default times a power of two.
double walked(std::string_view name, double start, std::uint8_t step) {
  if (name == "pattern") return step % 4;
  if (name == "axis" || name == "tensor" || name == "state") return step % 3;
  if (name == "position") return step - 1;
  if (name == "exponent" || name == "exponent_qk") return step;
  if (name == "share") return std::ldexp(step, -5);
  return std::ldexp(start == 0 ? 1 : start, (step & 15) - 8) * (step & 16 ? -1 : 1);
}

bool may_be_negative(std::string_view name) {
  return name == "level" || name == "step" || name == "high" || name == "low" || name == "value";
}

Values values_of(const Genome& g, Op op) {
  Values v;
  const Family& family = families()[g[Gene::family] % families().size()];
  v.family = std::string(family.name);
  v.seed = g[Gene::seed_low] + 256u * g[Gene::seed_high];
  for (std::size_t n = 0; n + 1 < family.parameters.size() && n < 3; ++n) {
    const auto& [name, start] = family.parameters[n];
    const std::uint8_t step = g[after(Gene::parameter_0, n)];
    if (step == 0) continue;
    const double x = walked(name, start, step);
    v.parameters.emplace(name, may_be_negative(name) ? x : std::fabs(x));
    if (name == "position") v.parameters["position"] = x;
  }
  if (op != Op::forward) v.parameters["state"] = g[Gene::state_parameter];
  return v;
}

std::int64_t elements_of(const Case& c, const char* tensor) {
  const auto shape = input_shape(c, tensor);
  std::int64_t n = shape.empty() ? 0 : 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

void lay_patterns(Case& c, const Genome& g, const Setting& setting) {
  const auto tensors = pattern_tensors(c.op);
  const bool nonfinite = g[Gene::nonfinite] == info(Gene::nonfinite).hi;
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    const std::int64_t elements = elements_of(c, tensors[p]);
    if (g.words[p].empty() || elements == 0) continue;
    const std::string_view name = tensors[p];
    const bool stored = name == "q" || name == "k" || name == "v";
    // An infinity that rounding makes is an input like any other, but not one that was asked for.
    const double most = facts(stored ? setting.storage : setting.accumulator).max;
    std::vector<double> numbers;
    for (const Word w : g.words[p]) {
      double x = number(w, g[Gene::stretch], g[Gene::fine], nonfinite);
      if (!nonfinite) x = std::clamp(x, -most, most);
      // A blocked key, an empty state: what -inf is for.
      if ((name == "scores" || name == "m") && (w >> 26) == 63) x = -kInfinity;
      if (name == "l") x = x == 0 ? 1 : std::fabs(x);
      numbers.push_back(x);
    }
    std::vector<double>& literal = c.values.tensors[tensors[p]].literal;
    literal.resize(static_cast<std::size_t>(elements));
    const std::size_t once = std::min<std::size_t>(g[Gene::once], numbers.size() - 1), again = numbers.size() - once;
    for (std::size_t n = 0; n < literal.size(); ++n) literal[n] = numbers[n < once ? n : once + (n - once) % again];
  }
}

// States as a fold leaves them: a maximum of -inf comes with a sum of 0; one that is no number, with nothing that is.
void agree_states(Case& c) {
  auto& tensors = c.values.tensors;
  if (c.op == Op::forward || (!tensors.contains("m") && !tensors.contains("l") && !tensors.contains("acc"))) return;
  auto values = make_values(c);
  const bool has_l = values.contains("l"), has_acc = values.contains("acc");
  const auto d = static_cast<std::size_t>(c.shape.d_v);
  std::vector<double>& m = values.at("m");
  for (std::size_t r = 0; r < m.size(); ++r) {
    const bool empty = m[r] == -kInfinity;
    if (!empty && !std::isfinite(m[r])) m[r] = kNaN;
    if (has_l && !empty && !(values["l"][r] > 0 && std::isfinite(values["l"][r]))) values["l"][r] = 1;
    if (!empty && !std::isnan(m[r])) continue;
    const double rest = empty ? 0 : kNaN;
    if (has_l) values["l"][r] = rest;
    for (std::size_t e = 0; has_acc && e < d; ++e) values["acc"][r * d + e] = rest;
  }
  for (const char* name : kMerge)
    if (values.contains(name)) tensors[name].literal = std::move(values[name]);
}

}  // namespace

std::span<const char* const> pattern_tensors(Op op) {
  return op == Op::forward ? std::span<const char* const>(kForward)
         : op == Op::step  ? std::span<const char* const>(kStep)
                           : std::span<const char* const>(kMerge);
}

Case to_case(const Genome& g, const Setting& setting) {
  Case c;
  c.op = setting.op;
  const bool forward = c.op == Op::forward;
  if (!forward) c.state = setting.states[g[Gene::state_kind] % setting.states.size()];
  const bool is_long = forward && g[Gene::size] == kLongSize;
  const Limited& limited = setting.limited;
  c.shape = is_long ? long_shape(g, limited) : shape_of(g, c.op, limited);
  const double budget = budget_of(g[Gene::size], c.op) * (limited.tile_k > 0 ? kMoreForTiles : 1);
  if (!is_long) limited.dimensions.empty() ? fit(c, budget) : fit_limited(c, budget);
  if (c.op == Op::merge) c.shape.tk = 1;
  c.tiling = tiling_of(g);
  if (c.op != Op::merge) c.mask = masks_of(g, c.shape, limited.tile_k);
  if (limited.causal && c.mask.causal == Causal::none) c.mask.causal = Causal::top_left;
  c.values = values_of(g, c.op);
  if (forward) {
    c.out = g[Gene::out] ? OutDType::accumulator : OutDType::storage;
    // Exact in every kernel's accumulator; the default 1 / sqrt(d) usually is not.
    if (g[Gene::scale]) c.scale = std::ldexp(256 + g[Gene::scale_fraction], static_cast<int>(g[Gene::scale]) - 17 - 8);
  }
  if (g[Gene::layouts]) {
    c.q_layout = layout_of(g[Gene::q_layout], forward);
    c.k_layout = layout_of(g[Gene::k_layout], forward);
    c.v_layout = layout_of(g[Gene::v_layout], forward);
    c.o_layout = layout_of(g[Gene::o_layout], forward);
  }
  if (!is_long) lay_patterns(c, g, setting);
  agree_states(c);
  return c;
}

void freeze(Genome& g, const Setting& setting) {
  const Case c = to_case(g, setting);
  const auto values = make_values(c);
  const auto tensors = pattern_tensors(c.op);
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    const auto at = values.find(tensors[p]);
    if (at == values.end() || at->second.empty() || at->second.size() > info(Gene::period_0).hi) continue;
    g.set_period(p, at->second.size());
    for (std::size_t n = 0; n < at->second.size(); ++n) {
      const double x = at->second[n];
      g.words[p][n] = x == -kInfinity ? Word{63} << 26 : word_of(std::isfinite(x) ? x : 0);
    }
  }
  g[Gene::stretch] = 1;
}

}  // namespace attest::fuzz
