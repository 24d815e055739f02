#include "properties/limits.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "oracle/problem.h"
#include "properties/execute.h"

namespace attest {
namespace {

bool takes(const Kernel& kernel, const Case& c) {
  const Problem problem(c, formats_for(kernel));
  char why[256] = "";
  return kernel.abi->supports(&problem.abi(), why, sizeof why) == ATTN_OK;
}

Limits ask(const Kernel& kernel) {
  Limits limits;
  if (kernel.abi->op != ATTN_OP_FORWARD) return limits;
  Case plain;
  if (needs_causal(kernel)) plain.mask.causal = Causal::top_left;
  const auto with_dimension = [&](std::int64_t d) {
    Case c = plain;
    c.shape.d_qk = c.shape.d_v = d;
    return c;
  };
  Case odd = with_dimension(3);
  odd.tiling.block_q = odd.tiling.block_k = 5;
  odd.q_layout.column_step = odd.k_layout.column_step = odd.v_layout.column_step = 2;
  if (takes(kernel, odd)) return limits;
  for (std::int64_t d = 1; d <= 256; ++d)
    if (takes(kernel, with_dimension(d))) limits.dimensions.push_back(d);
  // One that refuses everything (no device, another format) is left to say so itself.
  limits.picky = !limits.dimensions.empty();
  if (!limits.picky) return limits;
  // Longer than the blocks: one that is not shorter than its sequence may count as none.
  Case cut = with_dimension(limits.dimensions.front()), strided = cut;
  cut.shape.tq = cut.shape.tk = 11;
  cut.tiling.block_q = cut.tiling.block_k = 5;
  limits.odd_blocks = takes(kernel, cut);
  strided.q_layout.column_step = strided.k_layout.column_step = strided.v_layout.column_step = 2;
  limits.odd_strides = takes(kernel, strided);
  return limits;
}

}  // namespace

Layout aligned(Layout l) {
  l.column_step = 1;
  l.row_padding = (l.row_padding + 7) / 8 * 8;
  return l;
}

const Limits& limits_of(const Kernel& kernel) {
  static std::mutex lock;
  static std::map<const attn_kernel*, Limits> known;
  const std::lock_guard<std::mutex> hold(lock);
  const auto at = known.find(kernel.abi);
  return at != known.end() ? at->second : known.emplace(kernel.abi, ask(kernel)).first->second;
}

bool takes_accumulator(const Kernel& kernel) {
  Case c;
  c.out = OutDType::accumulator;
  if (const Limits& limits = limits_of(kernel); limits.picky) c.shape.d_qk = c.shape.d_v = limits.dimensions.front();
  if (needs_causal(kernel)) c.mask.causal = Causal::bottom_right;
  return takes(kernel, c);
}

Case with_accepted_dimensions(const Case& c, const Kernel& kernel) {
  const Limits& limits = limits_of(kernel);
  if (c.op != Op::forward || !limits.picky) return c;
  Case x = c;
  const auto widen = [&](std::int64_t Shape::*d, std::initializer_list<const char*> tensors) {
    const std::int64_t from = c.shape.*d;
    const auto at = std::lower_bound(limits.dimensions.begin(), limits.dimensions.end(), from);
    if (at == limits.dimensions.end() || *at == from) return;
    x.shape.*d = *at;
    for (const char* name : tensors) {
      const auto values = x.values.tensors.find(name);
      if (values == x.values.tensors.end()) continue;
      std::vector<double>& all = values->second.literal;
      std::vector<double> wide(all.size() / static_cast<std::size_t>(from) * static_cast<std::size_t>(*at), 0.0);
      for (std::size_t n = 0; n < all.size(); ++n)
        wide[n / static_cast<std::size_t>(from) * static_cast<std::size_t>(*at) + n % static_cast<std::size_t>(from)] =
            all[n];
      all = std::move(wide);
    }
  };
  for (const char* name : {"q", "k", "v"})
    if (!x.values.tensors.contains(name) || x.values.tensors.at(name).literal.empty()) return c;
  widen(&Shape::d_qk, {"q", "k"});
  widen(&Shape::d_v, {"v"});
  return x;
}

Case made_acceptable(const Case& c, const Kernel& kernel) {
  using Remedy = void (*)(Case&);
  constexpr Remedy remedies[] = {
      [](Case&) {},
      [](Case& x) { x.tiling.splits = 0; },
      [](Case& x) { x.tiling.block_q = 0; },
      [](Case& x) { x.tiling.block_k = 0; },
      [](Case& x) {
        for (Layout* l : {&x.q_layout, &x.k_layout, &x.v_layout, &x.o_layout}) *l = aligned(*l);
      },
      [](Case& x) { x.mask.visible = x.mask.additive = {}; },
  };
  // Asking takes as long as making the problem: no more often than it must be.
  Case x = c;
  for (const Remedy remedy : remedies) {
    remedy(x);
    if (takes(kernel, x)) return x;
  }
  return c;
}

}  // namespace attest
