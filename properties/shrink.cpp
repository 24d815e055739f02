#include <algorithm>
#include <functional>

#include "oracle/recipe.h"
#include "properties/shapes.h"

namespace attest {
namespace {

using Change = std::function<void(Case&)>;

// Values of n that are simpler, simplest first. A shrinker that only halves misses the edge, one that only
// decrements never arrives.
std::vector<std::int64_t> below(std::int64_t n, std::int64_t least) {
  std::vector<std::int64_t> out;
  for (std::int64_t v : {least, least + 1, n / 2, n - 1})
    if (v >= least && v < n && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  return out;
}

bool has_files(const Case& c) {
  return std::any_of(c.values.tensors.begin(), c.values.tensors.end(),
                     [](const auto& t) { return !t.second.npy.empty(); });
}

void add_shapes(const Case& c, std::vector<Case>& out) {
  if (has_files(c)) return;  // a .npy fixes the shape
  const auto axis = [&](std::int64_t Shape::*n, std::int64_t least) {
    for (std::int64_t v : below(c.shape.*n, least)) {
      Shape s = c.shape;
      s.*n = v;
      out.push_back(with_shape(c, s));
    }
  };
  if (c.op == Op::forward) {
    axis(&Shape::batch, 1);
    // Heads go together: q_heads must stay a multiple of kv_heads.
    for (std::int64_t kv : below(c.shape.kv_heads, 1)) {
      Shape s = c.shape;
      s.q_heads = s.q_heads / s.kv_heads * kv;
      s.kv_heads = kv;
      out.push_back(with_shape(c, s));
    }
    for (std::int64_t group : below(c.shape.q_heads / c.shape.kv_heads, 1)) {
      Shape s = c.shape;
      s.q_heads = s.kv_heads * group;
      out.push_back(with_shape(c, s));
    }
  }
  if (c.op == Op::merge) axis(&Shape::parts, 2);
  axis(&Shape::tq, c.shape.tq > 0 ? 1 : 0);
  if (c.op != Op::merge) axis(&Shape::tk, c.shape.tk > 0 ? 1 : 0);
  if (c.op == Op::forward) axis(&Shape::d_qk, 1);
  axis(&Shape::d_v, 1);
}

std::vector<Change> option_changes(const Case& c) {
  std::vector<Change> out;
  out.push_back([](Case& x) { x.reserved = {}; });
  out.push_back([](Case& x) { x.mask = {}; });
  out.push_back([](Case& x) { x.mask.additive = {}; });
  out.push_back([](Case& x) { x.mask.visible = {}; });
  out.push_back([](Case& x) { x.mask.kv_len.clear(); });
  out.push_back([](Case& x) { x.mask.causal = Causal::none; });
  out.push_back([](Case& x) { x.q_layout = x.k_layout = x.v_layout = x.o_layout = Layout{}; });
  out.push_back([](Case& x) { x.tiling.threads = 1; });
  out.push_back([](Case& x) { x.tiling.splits = 0; });
  for (std::int64_t n : below(c.tiling.splits, 1)) out.push_back([n](Case& x) { x.tiling.splits = n; });
  for (std::int64_t n : below(c.tiling.block_q, 1)) out.push_back([n](Case& x) { x.tiling.block_q = n; });
  for (std::int64_t n : below(c.tiling.block_k, 1)) out.push_back([n](Case& x) { x.tiling.block_k = n; });
  out.push_back([](Case& x) { x.tiling.block_q = 0; });
  if (c.op == Op::forward) out.push_back([](Case& x) { x.scale = 1.0; });
  return out;
}

std::vector<Change> value_changes(const Case& c) {
  std::vector<Change> out;
  if (c.values.tensors.empty()) {
    // Families are listed in the order of their simplicity as far as that can be said; gaussian is the plainest.
    for (const char* family : {"constant", "gaussian"})
      if (find_family(family) && c.values.family != family)
        out.push_back([family](Case& x) {
          x.values.family = family;
          x.values.parameters.clear();
        });
    out.push_back([](Case& x) { x.values.parameters.clear(); });
    out.push_back([](Case& x) { x.values.seed = 0; });
  }
  return out;
}

}  // namespace

std::vector<Case> shrink_case(const Case& c) {
  std::vector<Case> out;
  add_shapes(c, out);
  for (const auto& changes : {option_changes(c), value_changes(c)})
    for (const Change& change : changes) {
      Case x = c;
      change(x);
      out.push_back(std::move(x));
    }
  // Changes that changed nothing would make a greedy search run forever.
  std::erase(out, c);
  return out;
}

}  // namespace attest
