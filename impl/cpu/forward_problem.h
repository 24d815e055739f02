// A forward problem seen through its format: typed pointers, strides, shapes, and the copies of rows into dense
// accumulator-format scratch that the row loops work on.
#pragma once

#include "impl/attention.h"
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"
#include "impl/cpu/formats.h"

namespace attn {

// Blocks of the kernels where the problem leaves them open. Contracts name them too.
inline constexpr Index default_block_q = 64;
inline constexpr Index default_block_k = 128;
inline constexpr Index default_most_splits = 16;
inline constexpr Index most_threads = 256;

// Shapes and tiling of a forward problem, independent of formats.
struct ForwardShape {
  Index batch, q_heads, kv_heads, tq, tk, d_qk, d_v;
  Index block_q, block_k;  // at least 1, never larger than the sequence (or 1)
  Index threads;

  explicit ForwardShape(const attn_problem& p)
      : batch(p.q.shape[0]),
        q_heads(p.q.shape[1]),
        kv_heads(p.k.shape[1]),
        tq(p.q.shape[2]),
        tk(p.k.shape[2]),
        d_qk(p.q.shape[3]),
        d_v(p.v.shape[3]),
        block_q(clip(p.tiling.block_q, default_block_q, tq)),
        block_k(clip(p.tiling.block_k, default_block_k, tk)),
        threads(smaller(larger(p.tiling.threads, 1), most_threads)) {}

  Index heads() const { return batch * q_heads; }
  Index rows() const { return heads() * tq; }
  Index query_blocks() const { return block_count({0, tq}, block_q); }
  IndexRange query_block(Index index) const { return block_range({0, tq}, block_q, index); }

 private:
  static Index clip(Index asked, Index open, Index length) {
    return larger(1, smaller(asked > 0 ? asked : open, length));
  }
};

// One head of one batch entry.
struct HeadIndex {
  Index batch, q_head, kv_head;
};

inline HeadIndex head_of(const ForwardShape& shape, Index flat) {
  const Index h = flat % shape.q_heads;
  return {flat / shape.q_heads, h, h / (shape.q_heads / shape.kv_heads)};
}

inline Visibility visibility_of(const attn_problem& p, const ForwardShape& shape, Index batch) {
  Visibility see{shape.tq, shape.tk, p.mask.kv_len ? p.mask.kv_len[batch] : shape.tk, CausalAlignment::none};
  if (p.mask.causal == ATTN_CAUSAL_TOP_LEFT) see.causal = CausalAlignment::top_left;
  if (p.mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT) see.causal = CausalAlignment::bottom_right;
  return see;
}

// Boolean and additive masks of one head. They thin out what Visibility lets through.
class TensorMask {
 public:
  TensorMask(const attn_mask& mask, const HeadIndex& head) {
    if (mask.visible.data) {
      const attn_tensor& t = mask.visible;
      visible_ = static_cast<const std::uint8_t*>(t.data) + head.batch * t.stride[0] + head.q_head * t.stride[1];
      visible_row_ = t.stride[2];
      visible_key_ = t.stride[3];
    }
    if (mask.additive.data) {
      const attn_tensor& t = mask.additive;
      additive_ = static_cast<const float*>(t.data) + head.batch * t.stride[0] + head.q_head * t.stride[1];
      additive_row_ = t.stride[2];
      additive_key_ = t.stride[3];
    }
  }
  bool present() const { return visible_ || additive_; }

  // seen[t] = whether row i sees key first + t, for t < n.
  void row(Index i, Index first, Index n, std::uint8_t* seen) const {
    for (Index t = 0; t < n; ++t) seen[t] = 1;
    if (visible_)
      for (Index t = 0; t < n; ++t) seen[t] = visible_[i * visible_row_ + (first + t) * visible_key_] != 0;
    if (additive_)
      for (Index t = 0; t < n; ++t)
        seen[t] &= static_cast<std::uint8_t>(additive_[i * additive_row_ + (first + t) * additive_key_] == 0.0f);
  }

 private:
  const std::uint8_t* visible_ = nullptr;
  const float* additive_ = nullptr;
  Index visible_row_ = 0, visible_key_ = 0, additive_row_ = 0, additive_key_ = 0;
};

// Rows [rows.begin, rows.end) of one head of a rank-4 tensor into dense [n][d], converted to Acc.
template <class Storage, class Acc>
void pack_rows(const attn_tensor& t, Index batch, Index head, IndexRange rows, Index d, Acc* out) {
  const Storage* base = static_cast<const Storage*>(t.data) + batch * t.stride[0] + head * t.stride[1];
  const Index step = t.stride[3];
  for (Index r = rows.begin; r < rows.end; ++r, out += d) {
    const Storage* row = base + r * t.stride[2];
    if (step == 1) {
      for (Index k = 0; k < d; ++k) out[k] = convert<Acc>(row[k]);
    } else {
      for (Index k = 0; k < d; ++k) out[k] = convert<Acc>(row[k * step]);
    }
  }
}

// The same, transposed: out is [d][ld], one column per row, so that scores vectorise over keys.
template <class Storage, class Acc>
void pack_columns(const attn_tensor& t, Index batch, Index head, IndexRange rows, Index d, Acc* out, Index ld) {
  const Storage* base = static_cast<const Storage*>(t.data) + batch * t.stride[0] + head * t.stride[1];
  const Index step = t.stride[3], row_step = t.stride[2], n = rows.size();
  base += rows.begin * row_step;
  // Strips of 8 keys: a strip's rows stay in cache while its columns are written in runs of 8.
  for (Index j0 = 0; j0 < n; j0 += 8) {
    const Index width = smaller(8, n - j0);
    for (Index k = 0; k < d; ++k)
      for (Index j = j0; j < j0 + width; ++j) out[k * ld + j] = convert<Acc>(base[j * row_step + k * step]);
  }
}

// Writes a dense row of n values to row i of o (rank 4), in o's own format.
template <class Storage, class Acc>
void store_row(const attn_tensor& o, const HeadIndex& head, Index i, const Acc* row, Index n) {
  const Index at = head.batch * o.stride[0] + head.q_head * o.stride[1] + i * o.stride[2];
  const Index step = o.stride[3];
  if (o.dtype == dtype_of<Acc>) {
    Acc* out = static_cast<Acc*>(o.data) + at;
    for (Index e = 0; e < n; ++e) out[e * step] = row[e];
  } else {
    Storage* out = static_cast<Storage*>(o.data) + at;
    for (Index e = 0; e < n; ++e) out[e * step] = convert<Storage>(row[e]);
  }
}

template <class Acc>
void store_lse(const attn_tensor& lse, const HeadIndex& head, Index i, Acc value) {
  if (!lse.data) return;
  static_cast<Acc*>(lse.data)[head.batch * lse.stride[0] + head.q_head * lse.stride[1] + i * lse.stride[2]] = value;
}

}  // namespace attn
