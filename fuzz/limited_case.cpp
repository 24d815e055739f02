#include "fuzz/limited_case.h"

#include <algorithm>

#include "properties/limits.h"

namespace attest::fuzz {
namespace {

// Lengths beyond this share of the gene's range stand for the ends of tiles.
constexpr int kDirect = 32;
constexpr int kPlaces = 5;  // two before the end of a tile to two behind it

double as_number(std::int64_t n) { return static_cast<double>(n); }

// Truth and bound of the judged rows, a number for each element, and who sees whom: of every row, as masks are.
double cost_of(const Shape& s) {
  const double heads = as_number(s.batch * s.q_heads), rows = heads * as_number(s.tq),
               keys = as_number(s.batch * s.kv_heads) * as_number(s.tk), width = as_number(s.d_qk + s.d_v);
  return std::min(rows, as_number(kJudgedRows)) * as_number(s.tk) * width + (rows + keys) * width +
         8 * rows * as_number(s.tk);
}

}  // namespace

Limited limits_for_search(const Kernel& kernel) {
  Limited limited;
  const attn_kernel& k = *kernel.abi;
  if (k.op == ATTN_OP_FORWARD && limits_of(kernel).picky) {
    limited.dimensions = limits_of(kernel).dimensions;
    limited.causal = needs_causal(kernel);
  }
  if (k.device != ATTN_DEVICE_CPU && k.op != ATTN_OP_MERGE) {
    limited.tile_q = k.contract.default_block_q;
    limited.tile_k = k.contract.default_block_k;
  }
  return limited;
}

std::int64_t length_of(std::uint8_t gene, std::uint8_t most, std::int64_t tile) {
  const int direct = std::min<int>(kDirect, most / 2);
  if (tile <= 0 || gene <= direct) return gene;
  const int beyond = gene - direct - 1;
  return std::max<std::int64_t>(1, (1 + beyond / kPlaces) * tile + beyond % kPlaces - kPlaces / 2);
}

std::int64_t dimension_of(std::uint8_t gene, bool far, const Limited& limited) {
  const std::size_t n = limited.dimensions.size(), range = info(Gene::d_qk).hi;
  const std::size_t beyond = far && n > range ? n - range : 0;
  return limited.dimensions[(gene - 1u + beyond) % n];
}

void fit_limited(Case& c, double budget) {
  Shape& s = c.shape;
  std::int64_t group = s.q_heads / s.kv_heads;
  while (cost_of(s) > budget) {
    // The longer of the two keeps the end of its tile; the other becomes short.
    std::int64_t* longer = s.tk >= s.tq ? &s.tk : &s.tq;
    std::int64_t* shorter = s.tk >= s.tq ? &s.tq : &s.tk;
    std::int64_t* most = *shorter > 1 ? shorter : longer;
    for (std::int64_t* heads : {&s.batch, &group, &s.kv_heads})
      if (*heads > 1) {
        most = heads;
        break;
      }
    if (*most <= 1) break;
    *most = (*most + 1) / 2;
    s.q_heads = s.kv_heads * group;
  }
}

Case made_for(Case c, const Kernel& kernel, const Limited& limited) {
  if (limited.causal && c.mask.causal == Causal::none) c.mask.causal = Causal::bottom_right;
  if (limited.dimensions.empty()) return c;
  if (c.values.tensors.empty()) {
    const auto& all = limited.dimensions;
    for (std::int64_t* d : {&c.shape.d_qk, &c.shape.d_v}) {
      const auto at = std::lower_bound(all.begin(), all.end(), *d);
      *d = at == all.end() ? all.back() : *at;
    }
  } else {
    c = with_accepted_dimensions(c, kernel);
  }
  // What is known to be refused is put right unasked: asking costs as much as a check does.
  const Limits& limits = limits_of(kernel);
  if (!limits.odd_blocks) c.tiling.splits = c.tiling.block_q = c.tiling.block_k = 0;
  if (!limits.odd_strides)
    for (Layout* l : {&c.q_layout, &c.k_layout, &c.v_layout, &c.o_layout}) *l = aligned(*l);
  return made_acceptable(c, kernel);
}

}  // namespace attest::fuzz
