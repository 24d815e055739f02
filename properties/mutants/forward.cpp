// The readable forward kernel, row by row: its splits and what is written.
#include "properties/mutants/forward.h"

#include <algorithm>
#include <cmath>

#include "properties/mutants/tensor.h"

namespace attest::mutants {

Forward::Forward(Bug planted, const attn_problem& problem) : bug(planted), p(problem) {
  B = p.q.shape[0], Hq = p.q.shape[1], Tq = p.q.shape[2], dqk = p.q.shape[3];
  Hkv = p.k.shape[1], Tk = p.k.shape[2], dv = p.v.shape[3];
  block_q = p.tiling.block_q > 0 ? p.tiling.block_q : 16;
  block_k = p.tiling.block_k > 0 ? p.tiling.block_k : 32;
  splits = p.tiling.splits > 0 ? p.tiling.splits : 1;
  if (is(Bug::none_whole_row)) block_k = std::max<int64_t>(1, Tk), splits = 1;
  if (is(Bug::splits_by_batch)) splits = B;
  scale = static_cast<float>(p.scale);
  if (is(Bug::scale_ignored)) scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dqk)));
  if (is(Bug::scale_off_by_2_pow_minus_10)) scale *= 1 + 0x1p-10f;
  if (is(Bug::scale_twice)) scale *= scale;
}

void Forward::row(int64_t b, int64_t h, int64_t i) const {
  const bool partial_block = Tq % block_q != 0 && i == Tq - 1;
  if (is(Bug::last_row_unwritten) && partial_block) return;
  std::vector<float> o(static_cast<size_t>(dv));
  float lse = -kInf;
  if (splits == 1) {
    Partial s = run_keys(b, h, i, 0, Tk);
    if (is(Bug::empty_rows_unwritten) && !s.any) return;
    finish(s, o.data(), &lse);
  } else {
    const int64_t per = ((Tk + splits - 1) / splits + block_k - 1) / block_k * block_k;
    std::vector<std::vector<float>> os;
    std::vector<float> lses;
    for (int64_t s = 0; s < splits; ++s) {
      const int64_t lo = std::min(s * per, Tk);
      int64_t hi = std::min(lo + per, Tk);
      if (is(Bug::split_last_dropped) && s > 0 && hi == Tk && hi - lo < per) hi = lo;
      if (is(Bug::split_overlaps) && hi < Tk) hi += 1;
      Partial part = run_keys(b, h, i, lo, hi);
      os.emplace_back(static_cast<size_t>(dv));
      float y = 0;
      finish(part, os.back().data(), &y);
      if (is(Bug::split_empty_garbage) && !part.any) y = 0;
      lses.push_back(y);
    }
    merge(os, lses, o.data(), &lse);
  }
  for (int64_t e = 0; e < dv; ++e) {
    const int64_t at = is(Bug::output_stride_dense) ? ((b * Hq + h) * Tq + i) * dv + e : offset(p.o, b, h, i, e);
    if (is(Bug::beta_zero)) o[e] += 0 * load_at(p.o, at);
    store_at(p.o, at, o[e]);
  }
  if (is(Bug::writes_past_end) && i == Tq - 1 && h == Hq - 1 && b == B - 1 && dv > 0)
    store_at(p.o, offset(p.o, b, h, i, dv), 1);
  if (p.lse.data && !(is(Bug::lse_unwritten) && lse == -kInf)) {
    store_at(p.lse, b * p.lse.stride[0] + h * p.lse.stride[1] + i * p.lse.stride[2], lse);
  }
}

int32_t run_forward(Bug bug, const attn_problem& p) {
  const Forward f(bug, p);
  for (int64_t b = 0; b < f.B; ++b) {
    for (int64_t h = 0; h < f.Hq; ++h) {
      for (int64_t i = 0; i < f.Tq; ++i) f.row(b, h, i);
    }
  }
  if (bug == Bug::writes_input && f.B * f.Hq * f.Tq * f.dqk > 0) store_at(p.q, 0, load_at(p.q, 0) * 0.5f);
  return ATTN_OK;
}

}  // namespace attest::mutants
