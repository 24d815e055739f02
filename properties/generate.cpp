#include "properties/generate.h"

#include <algorithm>
#include <cmath>

#include "oracle/bound.h"
#include "oracle/recipe.h"
#include "properties/execute.h"
#include "properties/limits.h"
#include "properties/shapes.h"

namespace attest {
namespace {

Op op_of(const Kernel& kernel) {
  return kernel.abi->op == ATTN_OP_STEP ? Op::step : kernel.abi->op == ATTN_OP_MERGE ? Op::merge : Op::forward;
}

// The Contract does not say which states a kernel holds; its supports() does.
std::vector<StateKind> states_of(const Kernel& kernel, Op op) {
  std::vector<StateKind> out;
  for (StateKind kind : {StateKind::ml, StateKind::mla, StateKind::olse}) {
    if (op == Op::step && kind == StateKind::olse) continue;
    Case c;
    c.op = op;
    c.state = kind;
    Problem p(c, formats_for(kernel));
    char why[256] = "";
    if (kernel.abi->supports(&p.abi(), why, sizeof why) == ATTN_OK) out.push_back(kind);
  }
  if (out.empty()) out.push_back(StateKind::mla);
  return out;
}

std::int64_t random_block(Random& random) {
  static const std::vector<std::int64_t> small{1, 2, 3, 4, 5, 7, 8, 16}, large{13, 17, 31, 32, 33, 64, 128, 200};
  if (random.chance(0.15)) return 0;
  return random.chance(0.7) ? random.pick(small) : random.pick(large);
}

Tiling random_tiling(Random& random) {
  Tiling t;
  t.block_q = random_block(random);
  t.block_k = random_block(random);
  t.splits = random.chance(0.5) ? 0 : random.between(1, 9);
  // Starting threads costs more than a small problem does.
  t.threads = random.chance(0.1) ? static_cast<std::int32_t>(random.between(2, 3)) : 1;
  return t;
}

Layout random_layout(Random& random, bool heads) {
  Layout l;
  if (random.chance(0.6)) return l;
  l.heads_inside = heads && random.chance(0.5);
  if (random.chance(0.5)) l.row_padding = random.between(1, 9);
  if (random.chance(0.3)) l.head_padding = random.between(1, 3);
  if (random.chance(0.25)) l.column_step = random.between(2, 3);
  return l;
}

MaskTensor random_mask(Random& random) {
  MaskTensor m;
  const auto& patterns = mask_patterns();
  m.pattern = std::string(patterns[random.between(0, static_cast<std::int64_t>(patterns.size()) - 1)]);
  m.seed = random.bits() >> 40;
  m.density = random.chance(0.5) ? 0.5 : random.unit();
  return m;
}

// Axes of extent 1 are broadcast by stride 0.
void broadcast_some(MaskTensor& m, const Shape& s, Random& random) {
  if (!random.chance(0.3)) return;
  m.mask_shape = {s.batch, s.q_heads, s.tq, s.tk};
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (random.chance(0.5)) m.mask_shape[axis] = 1;
}

void random_masks(Case& c, Random& random) {
  if (random.chance(0.4)) c.mask.causal = random.chance(0.5) ? Causal::top_left : Causal::bottom_right;
  if (random.chance(0.2))
    for (std::int64_t b = 0; b < c.shape.batch; ++b) c.mask.kv_len.push_back(random.between(0, c.shape.tk));
  if (random.chance(0.15)) {
    c.mask.visible = random_mask(random);
    broadcast_some(c.mask.visible, c.shape, random);
  }
  if (random.chance(0.1)) {
    c.mask.additive = random_mask(random);
    broadcast_some(c.mask.additive, c.shape, random);
  }
}

// Exact in the accumulator format: a kernel may narrow it without a term of its own. Absent, in one case of ten, is
// the case that is about narrowing.
std::optional<double> random_scale(Random& random, std::int64_t d_qk, DType accumulator) {
  if (random.chance(0.1)) return std::nullopt;
  if (random.chance(0.2)) return std::ldexp(1.0, static_cast<int>(random.between(-4, 1)));
  const double s = 1.0 / std::sqrt(static_cast<double>(d_qk));
  return accumulator == DType::fp64 ? s : static_cast<double>(static_cast<float>(s));
}

void random_values(Case& c, const Law& law, Random& random) {
  const auto& all = families();
  c.values.seed = random.bits() >> 32;
  for (int turn = 0; turn < 64; ++turn) {
    const Family& f = all[random.between(0, static_cast<std::int64_t>(all.size()) - 1)];
    // The statistical laws may only judge plain random values.
    if (!law.searched_inputs && !f.random) continue;
    c.values.family = std::string(f.name);
    return;
  }
}

// A law about another operation may have set what this one does not have; such a case says so by why_not, and must
// still be a valid one.
void drop_foreign(Case& c) {
  Shape& s = c.shape;
  if (c.op != Op::merge) s.parts = 2;
  if (c.op == Op::forward) return;
  s.batch = s.q_heads = s.kv_heads = s.d_qk = 1;
  if (c.op == Op::merge) s.tk = 1;
  c.mask = {};
  c.out = OutDType::storage;
}

}  // namespace

bool needs_causal(const Kernel& kernel) {
  Case c;
  const auto takes = [&] {
    char why[256] = "";
    const Problem p(c, formats_for(kernel));
    return kernel.abi->supports(&p.abi(), why, sizeof why) == ATTN_OK;
  };
  for (const std::int64_t d : {1, 64}) {  // some take no small dimension
    c.shape.d_qk = c.shape.d_v = d;
    c.mask.causal = Causal::none;
    if (takes()) return false;
    c.mask.causal = Causal::top_left;
    if (takes()) return true;
  }
  return false;
}

Case generate_case(const Kernel& kernel, const Law& law, Random& random, double size) {
  size = std::clamp(size, 0.0, 1.0);
  const attn_contract& contract = kernel.abi->contract;
  Case c;
  c.op = op_of(kernel);
  if (c.op != Op::forward) c.state = random.pick(states_of(kernel, c.op));
  c.tiling = random_tiling(random);
  const auto tile = [&](std::int64_t asked, std::int64_t own) {
    return asked > 0 ? asked : own > 0 ? std::min<std::int64_t>(own, 64) : 16;
  };
  c.shape = random_shape(random, c.op, tile(c.tiling.block_q, contract.default_block_q),
                         tile(c.tiling.block_k, contract.default_block_k), size);
  // One case in ten is left as it falls, so that a picky kernel's refusals are seen as well.
  const bool picky = limits_of(kernel).picky && random.chance(0.9);
  if (picky) {
    const auto& dimensions = limits_of(kernel).dimensions;
    c.shape.d_qk = c.shape.d_v = random.pick(dimensions);
    if (random.chance(0.3)) c.shape.d_v = random.pick(dimensions);
  }
  // Truth, bound and kernel together cost about 10 ns for each unit of work. Dimensions that cannot be cut take more.
  double budget = (2e3 + 5e4 * size) * (picky ? 4 : 1);
  if (random.chance(0.03 * size)) {
    budget = 4e5;
    if (c.op == Op::forward && !picky && random.chance(0.5)) c.shape = long_shape(random);
  }
  fit_to(c, random, budget, picky);
  if (c.op == Op::forward) {
    random_masks(c, random);
    c.scale = random_scale(random, c.shape.d_qk, dtype_of(contract.acc_dtype));
    if (random.chance(0.3)) c.out = OutDType::accumulator;
  }
  if (random.chance(0.3)) {
    const bool heads = c.op == Op::forward;  // states and blocks have no heads to put inside
    c.q_layout = random_layout(random, heads);
    c.k_layout = random_layout(random, heads);
    c.v_layout = random_layout(random, heads);
    c.o_layout = random_layout(random, heads);
  }
  random_values(c, law, random);
  if (law.shape_case) law.shape_case(c, random);
  drop_foreign(c);
  if (c.op == Op::forward && c.mask.causal == Causal::none && needs_causal(kernel))
    c.mask.causal = random.chance(0.5) ? Causal::top_left : Causal::bottom_right;
  // What the law asked for may cost more; literals it wrote are cut along with the shape.
  Case smaller = c;
  fit_to(smaller, random, 2 * budget, picky);
  agree(smaller, random);
  if (!(smaller.shape == c.shape)) c = with_shape(c, smaller.shape);
  agree(c, random);
  return picky ? made_acceptable(c, kernel) : c;
}

}  // namespace attest
