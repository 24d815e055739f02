// Flash-Decoding: every split of the keys gives a normalised O and its LSE per row; a second pass merges them, dividing
// by the sum of its own weights. An empty split has LSE = -inf and takes no part.
#include "impl/cpu/forward.h"
#include "impl/cpu/parallel.h"
#include "impl/cpu/query_block.h"

namespace attn {

namespace {

// From Tk alone, never from the batch: the bits of a request must not depend on what it is batched with.
Index splits_for(const attn_problem& p, Index tk) {
  if (p.tiling.splits > 0) return p.tiling.splits;
  return larger(1, smaller(ceil_div(tk, 512), default_most_splits));
}

// Partial results in the workspace: per row, per split, d_v values of O and one of LSE. Trailing empty splits are not
// kept: they would change nothing.
template <class F>
struct Partials {
  using Acc = typename F::Acc;
  SplitPlan plan;
  Index splits, d_v;
  Acc* data;

  Partials(const attn_problem& p, const ForwardShape& shape, void* workspace)
      : plan(plan_splits(shape.tk, splits_for(p, shape.tk), shape.block_k)),
        splits(plan.used()),
        d_v(shape.d_v),
        data(static_cast<Acc*>(workspace)) {}

  std::size_t bytes(const ForwardShape& shape) const {
    const std::size_t per_row = static_cast<std::size_t>(splits) * static_cast<std::size_t>(d_v + 1);
    return (static_cast<std::size_t>(shape.rows()) * per_row * sizeof(Acc) + 63) / 64 * 64;
  }
  Acc* o(Index row, Index split) const { return data + (row * splits + split) * (d_v + 1); }
  Acc& lse(Index row, Index split) const { return o(row, split)[d_v]; }
};

// One query block over the keys of one split.
template <class F>
void split_block(const attn_problem& p, const ForwardShape& shape, const HeadIndex& head, IndexRange rows, Index split,
                 const Partials<F>& partials, Index first_row, QueryBlock<F>& block) {
  const Visibility see = visibility_of(p, shape, head.batch);
  const TensorMask mask(p.mask, head);
  block.clear(rows.size());
  const IndexRange visited = visited_range(see, rows, partials.plan.keys(split));
  const Index tiles = block_count(visited, shape.block_k);
  if (tiles > 0) block.load_queries(p, head, rows);
  for (Index t = 0; t < tiles; ++t) {
    const IndexRange keys = block_range(visited, shape.block_k, t);
    block.load_keys(p, head, keys);
    block.load_values(p, head, keys);
    block.template fold<Rescale::deferred>(rows, keys, see, mask, classify(see, rows, keys) == TileClass::full);
  }
  for (Index r = 0; r < rows.size(); ++r) {
    partials.lse(first_row + r, split) = block.finish(r, true);
    typename F::Acc* out = partials.o(first_row + r, split);
    for (Index e = 0; e < block.d_v; ++e) out[e] = block.acc[r * block.d_v + e];
  }
}

// O and LSE of one row from its parts, in increasing order of splits. An empty split weighs exactly 0; it is not passed
// over, so that a NaN in it is not either.
template <class F>
typename F::Acc merge_row(const Partials<F>& partials, Index row, typename F::Acc* out) {
  using Acc = typename F::Acc;
  Acc top = neg_infinity<Acc>;
  for (Index s = 0; s < partials.splits; ++s) top = max_or_nan(top, partials.lse(row, s));
  for (Index e = 0; e < partials.d_v; ++e) out[e] = Acc(0);
  Acc total = 0;
  for (Index s = 0; s < partials.splits; ++s) {
    const Acc weight = weight_of(partials.lse(row, s), finite_max(top), Acc(1));
    total += weight;
    const Acc* o = partials.o(row, s);
    for (Index e = 0; e < partials.d_v; ++e) out[e] = fused(weight, o[e], out[e]);
  }
  if (is_empty(top)) return top;
  divide_row(out, partials.d_v, total);
  return top + log_of(total);
}

template <class F>
Index worker_count(const ForwardShape& shape, const Partials<F>& partials) {
  return smaller(shape.threads, shape.heads() * shape.query_blocks() * larger(partials.splits, 1));
}

}  // namespace

template <class F>
std::size_t Decode<F>::workspace(const attn_problem& p) {
  const ForwardShape shape(p);
  if (shape.rows() == 0) return 0;
  const Partials<F> partials(p, shape, nullptr);
  return partials.bytes(shape) + static_cast<std::size_t>(worker_count(shape, partials)) * QueryBlock<F>::bytes(shape);
}

template <class F>
void Decode<F>::compute(const attn_problem& p, void* workspace) {
  const ForwardShape shape(p);
  if (shape.rows() == 0) return;
  const Partials<F> partials(p, shape, workspace);
  const auto scratch = [&](Index worker) {
    char* base = static_cast<char*>(workspace) + partials.bytes(shape);
    return QueryBlock<F>(shape, static_cast<typename F::Acc>(p.scale),
                         base + static_cast<std::size_t>(worker) * QueryBlock<F>::bytes(shape));
  };
  const Index blocks = shape.query_blocks(), splits = partials.splits;
  parallel_for(shape.threads, shape.heads() * blocks * splits, [&](Index task, Index worker) {
    QueryBlock<F> block = scratch(worker);
    const Index flat = task / splits, head = flat / blocks;
    const IndexRange rows = shape.query_block(flat % blocks);
    split_block(p, shape, head_of(shape, head), rows, task % splits, partials, head * shape.tq + rows.begin, block);
  });
  parallel_for(shape.threads, shape.heads() * blocks, [&](Index task, Index worker) {
    QueryBlock<F> block = scratch(worker);
    const HeadIndex head = head_of(shape, task / blocks);
    const IndexRange rows = shape.query_block(task % blocks);
    for (Index i = rows.begin; i < rows.end; ++i) {
      const auto lse = merge_row(partials, task / blocks * shape.tq + i, block.acc);
      store_row<typename F::Storage>(p.o, head, i, block.acc, shape.d_v);
      store_lse(p.lse, head, i, lse);
    }
  });
}

template struct Decode<Fp64>;
template struct Decode<Fp32>;
template struct Decode<Fp16P16>;
template struct Decode<Fp16P32>;
template struct Decode<Bf16P16>;
template struct Decode<Bf16P32>;

}  // namespace attn
