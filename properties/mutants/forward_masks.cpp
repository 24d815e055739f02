// Which keys a row sees.
#include <algorithm>

#include "properties/mutants/forward.h"
#include "properties/mutants/tensor.h"

namespace attest::mutants {

int64_t Forward::keys(int64_t b) const {
  if (!p.mask.kv_len || is(Bug::kv_len_ignored)) return Tk;
  return p.mask.kv_len[is(Bug::kv_len_of_first_batch) ? 0 : b];
}

int64_t Forward::causal_end(int64_t i) const {
  if (p.mask.causal == ATTN_CAUSAL_NONE || is(Bug::causal_ignored)) return Tk;
  bool bottom = p.mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT;
  if (is(Bug::causal_top_left_always)) bottom = false;
  if (is(Bug::causal_bottom_right_always)) bottom = true;
  int64_t end = i + 1 + (bottom ? Tk - Tq : 0);
  if (is(Bug::causal_off_by_one)) end -= 1;
  if (is(Bug::future_key_leaks)) end += 1;
  return std::clamp<int64_t>(end, 0, Tk);
}

bool Forward::visible(int64_t b, int64_t h, int64_t i, int64_t j) const {
  int64_t end = keys(b);
  if (is(Bug::key_at_kv_len_visible) && p.mask.kv_len) end = std::min(end + 1, Tk);
  if (j >= end || j >= causal_end(i)) return false;
  if (p.mask.visible.data && !is(Bug::mask_ignored) &&
      !static_cast<const uint8_t*>(p.mask.visible.data)[offset(p.mask.visible, b, h, i, j)])
    return false;
  if (p.mask.additive.data && !is(Bug::additive_ignored) && !is(Bug::additive_in_16_bit) &&
      load_at(p.mask.additive, offset(p.mask.additive, b, h, i, j)) == -kInf)
    return false;
  return true;
}

// Tiles that hold nothing visible are not visited.
bool Forward::skipped(int64_t q0, int64_t j0) const {
  if (p.mask.causal == ATTN_CAUSAL_NONE) {
    return is(Bug::skips_tiles_without_causal) && j0 > std::min(q0 + block_q, Tq) - 1;
  }
  if (is(Bug::causal_end_by_block_q)) return j0 >= causal_end(q0) / block_q * block_q + block_q;
  return j0 >= causal_end(std::min(q0 + block_q, Tq) - 1);
}

}  // namespace attest::mutants
