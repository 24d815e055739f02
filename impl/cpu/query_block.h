// One query block against one key tile at a time: the inner part that all forward kernels share. They differ in the
// order in which they visit tiles and in how O is rescaled.
#pragma once

#include <cstddef>

#include "impl/core/online_softmax.h"
#include "impl/cpu/forward_problem.h"
#include "impl/cpu/row_ops.h"

namespace attn {

enum class Rescale {
  deferred,     // acc is not normalised; rescaled when the maximum rises, divided at the end
  every_block,  // acc is O itself: multiplied by l before a block, divided by the new l after it
  fixed_max     // m already is the maximum of the whole row
};

// Scratch of one thread, carved from the caller's workspace. With Br, Bc the blocks clipped to the sequences it holds
// Br (d_qk + d_v + 2) + Bc (d_qk + d_v + 8) values and 8 Bc flags: within the Contract's formula, no term in Tq Tk.
template <class F>
struct QueryBlock {
  using Acc = typename F::Acc;
  static constexpr Index rows_in_flight = 8;

  Index d_qk, d_v, block_k;
  Acc scale;
  Acc *q, *kt, *v, *acc, *m, *l, *s;
  std::uint8_t* seen;

  static std::size_t bytes(const ForwardShape& shape) {
    const std::size_t br = static_cast<std::size_t>(shape.block_q), bc = static_cast<std::size_t>(shape.block_k);
    const std::size_t d = static_cast<std::size_t>(shape.d_qk) + static_cast<std::size_t>(shape.d_v);
    const std::size_t values = br * (d + 2) + bc * (d + rows_in_flight);
    return (values * sizeof(Acc) + bc * rows_in_flight + 63) / 64 * 64;
  }

  QueryBlock(const ForwardShape& shape, Acc narrowed_scale, void* scratch)
      : d_qk(shape.d_qk), d_v(shape.d_v), block_k(shape.block_k), scale(narrowed_scale) {
    q = static_cast<Acc*>(scratch);
    kt = q + shape.block_q * d_qk;
    v = kt + block_k * d_qk;
    acc = v + block_k * d_v;
    m = acc + shape.block_q * d_v;
    l = m + shape.block_q;
    s = l + shape.block_q;
    seen = reinterpret_cast<std::uint8_t*>(s + rows_in_flight * block_k);
  }

  // State of rows that have seen no key.
  void clear(Index rows) {
    for (Index r = 0; r < rows; ++r) {
      m[r] = neg_infinity<Acc>;
      l[r] = Acc(0);
    }
    for (Index t = 0; t < rows * d_v; ++t) acc[t] = Acc(0);
  }

  void load_queries(const attn_problem& p, const HeadIndex& head, IndexRange rows) {
    pack_rows<typename F::Storage>(p.q, head.batch, head.q_head, rows, d_qk, q);
  }
  void load_keys(const attn_problem& p, const HeadIndex& head, IndexRange keys) {
    pack_columns<typename F::Storage>(p.k, head.batch, head.kv_head, keys, d_qk, kt, block_k);
  }
  void load_values(const attn_problem& p, const HeadIndex& head, IndexRange keys) {
    pack_rows<typename F::Storage>(p.v, head.batch, head.kv_head, keys, d_v, v);
  }

  // Raises m to the maximum over the tile's visible scores, nothing else.
  void raise_max(IndexRange rows, IndexRange keys, const Visibility& see, const TensorMask& mask, bool full) {
    for (Index r0 = 0; r0 < rows.size(); r0 += rows_in_flight) {
      const Index count = smaller(rows_in_flight, rows.size() - r0);
      compute_scores(r0, count, keys.size());
      for (Index r = 0; r < count; ++r) {
        const Index n = apply_masks(r, rows.begin + r0 + r, keys, see, mask, full);
        m[r0 + r] = row_max(s + r * block_k, n, m[r0 + r]);
      }
    }
  }

  // Folds the loaded tile `keys` into the state of the loaded rows. full: every row sees every key by position.
  template <Rescale rescale>
  void fold(IndexRange rows, IndexRange keys, const Visibility& see, const TensorMask& mask, bool full) {
    for (Index r0 = 0; r0 < rows.size(); r0 += rows_in_flight) {
      const Index count = smaller(rows_in_flight, rows.size() - r0);
      compute_scores(r0, count, keys.size());
      Index length[rows_in_flight] = {};
      for (Index r = 0; r < count; ++r) {
        length[r] = apply_masks(r, rows.begin + r0 + r, keys, see, mask, full);
        if (length[r] > 0) weigh<rescale>(r, r0 + r, length[r]);
      }
      add_weights(l + r0, count, length);
      if constexpr (F::rounds_weights)
        for (Index r = 0; r < count; ++r) round_row<typename F::Weight>(s + r * block_k, length[r]);
      add_values(r0, count, length, mask.present());
      if constexpr (rescale == Rescale::every_block)
        for (Index r = 0; r < count; ++r)
          if (length[r] > 0 && !is_empty(m[r0 + r])) divide_row(acc + (r0 + r) * d_v, d_v, l[r0 + r]);
    }
  }

  // LSE of row r, and its acc divided by l (unless it already is). A row without keys gives O = 0 and -inf.
  Acc finish(Index r, bool divide) {
    if (is_empty(m[r])) return neg_infinity<Acc>;
    if (divide) divide_row(acc + r * d_v, d_v, l[r]);
    return fused(scale, m[r], log_of(l[r]));
  }

 private:
  void compute_scores(Index r0, Index count, Index n) {
    Index r = 0;
    for (; r + 2 <= count; r += 2) score_rows<2>(q + (r0 + r) * d_qk, d_qk, kt, block_k, n, s + r * block_k, block_k);
    for (; r < count; ++r) score_rows<1>(q + (r0 + r) * d_qk, d_qk, kt, block_k, n, s + r * block_k, block_k);
  }

  // Number of leading keys of the tile that row i may see by position; scores that a tensor mask hides become -inf.
  Index apply_masks(Index slot, Index i, IndexRange keys, const Visibility& see, const TensorMask& mask, bool full) {
    const Index n = full ? keys.size() : larger(0, smaller(keys.size(), see.visible_end(i) - keys.begin));
    if (mask.present()) {
      std::uint8_t* flags = seen + slot * block_k;
      Acc* x = s + slot * block_k;
      mask.row(i, keys.begin, n, flags);
      for (Index j = 0; j < n; ++j) x[j] = flags[j] ? x[j] : neg_infinity<Acc>;
    }
    return n;
  }

  // Scores of one row to weights; the state moves to the new maximum.
  template <Rescale rescale>
  void weigh(Index slot, Index r, Index n) {
    Acc* x = s + slot * block_k;
    if constexpr (rescale != Rescale::fixed_max) {
      const Acc risen = row_max(x, n, m[r]);
      const bool moved = risen != m[r];  // NaN counts as moved
      const Acc factor = moved ? rescale_factor(m[r], risen, scale) : Acc(1);
      l[r] *= factor;
      if (rescale == Rescale::every_block) scale_row(acc + r * d_v, d_v, l[r]);
      if (rescale == Rescale::deferred && moved) scale_row(acc + r * d_v, d_v, factor);
      m[r] = risen;
    }
    row_weights(x, n, finite_max(m[r]), scale);
  }

  // sum[r] += weights of the row, one by one in key order; rows side by side to hide the latency of the adds.
  void add_weights(Acc* sum, Index count, const Index* length) {
    Index common = count == rows_in_flight ? length[0] : 0;
    for (Index r = 0; r < count; ++r) common = smaller(common, length[r]);
    if (common > 0) {
      Acc part[rows_in_flight];
      for (Index r = 0; r < rows_in_flight; ++r) part[r] = sum[r];
      for (Index j = 0; j < common; ++j)
        for (Index r = 0; r < rows_in_flight; ++r) part[r] += s[r * block_k + j];
      for (Index r = 0; r < rows_in_flight; ++r) sum[r] = part[r];
    }
    for (Index r = 0; r < count; ++r)
      for (Index j = common; j < length[r]; ++j) sum[r] += s[r * block_k + j];
  }

  void add_values(Index r0, Index count, const Index* length, bool masked) {
    for (Index r = 0; r < count;) {
      const Acc* p = s + r * block_k;
      Acc* out = acc + (r0 + r) * d_v;
      if (!masked && r + 1 < count && length[r] == length[r + 1]) {
        accumulate_values<2>(p, block_k, v, length[r], d_v, out);
        r += 2;
        continue;
      }
      if (!masked) accumulate_values<1>(p, block_k, v, length[r], d_v, out);
      // Runs of visible keys: a hidden key's value is not touched, so that 0 * NaN does not arise.
      const std::uint8_t* flags = seen + r * block_k;
      for (Index j = 0; masked && j < length[r];) {
        const Index begin = j;
        while (j < length[r] && flags[j]) ++j;
        accumulate_values<1>(p + begin, block_k, v + begin * d_v, j - begin, d_v, out);
        while (j < length[r] && !flags[j]) ++j;
      }
      ++r;
    }
  }
};

}  // namespace attn
