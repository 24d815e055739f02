// FlashAttention-2 and its causal variant: queries outside, keys inside.
#include "impl/cpu/forward.h"
#include "impl/cpu/parallel.h"
#include "impl/cpu/query_block.h"

namespace attn {

namespace {

template <class F>
using Scratch = QueryBlock<F>;

template <class F>
void store_block(const attn_problem& p, const HeadIndex& head, IndexRange rows, QueryBlock<F>& block) {
  for (Index r = 0; r < rows.size(); ++r) {
    const auto lse = block.finish(r, true);
    store_row<typename F::Storage>(p.o, head, rows.begin + r, block.acc + r * block.d_v, block.d_v);
    store_lse(p.lse, head, rows.begin + r, lse);
  }
}

template <class F>
void fold_tile(const attn_problem& p, const HeadIndex& head, IndexRange rows, IndexRange keys, const Visibility& see,
               const TensorMask& mask, bool full, QueryBlock<F>& block) {
  block.load_keys(p, head, keys);
  block.load_values(p, head, keys);
  block.template fold<Rescale::deferred>(rows, keys, see, mask, full);
}

// One query block, tile by tile in key order, each tile classified.
template <class F>
void any_mask_block(const attn_problem& p, const ForwardShape& shape, const HeadIndex& head, IndexRange rows,
                    QueryBlock<F>& block) {
  const Visibility see = visibility_of(p, shape, head.batch);
  const TensorMask mask(p.mask, head);
  block.clear(rows.size());
  block.load_queries(p, head, rows);
  const IndexRange visited = visited_range(see, rows, {0, shape.tk});
  for (Index t = 0; t < block_count(visited, shape.block_k); ++t) {
    const IndexRange keys = block_range(visited, shape.block_k, t);
    const TileClass tile = classify(see, rows, keys);
    if (tile != TileClass::skip) fold_tile(p, head, rows, keys, see, mask, tile == TileClass::full, block);
  }
  store_block(p, head, rows, block);
}

// The same for a causal mask: the number of full tiles is known beforehand.
template <class F>
void causal_block(const attn_problem& p, const ForwardShape& shape, const HeadIndex& head, IndexRange rows,
                  QueryBlock<F>& block) {
  const Visibility see = visibility_of(p, shape, head.batch);
  const TensorMask mask(p.mask, head);
  block.clear(rows.size());
  block.load_queries(p, head, rows);
  const IndexRange visited = visited_range(see, rows, {0, shape.tk});
  const Index full = full_tiles(see, rows, visited, shape.block_k);
  Index t = 0;
  for (; t < full; ++t) fold_tile(p, head, rows, block_range(visited, shape.block_k, t), see, mask, true, block);
  for (; t < block_count(visited, shape.block_k); ++t)
    fold_tile(p, head, rows, block_range(visited, shape.block_k, t), see, mask, false, block);
  store_block(p, head, rows, block);
}

template <class F>
std::size_t thread_scratch(const attn_problem& p, Index tasks) {
  const ForwardShape shape(p);
  return static_cast<std::size_t>(smaller(shape.threads, tasks)) * Scratch<F>::bytes(shape);
}

template <class F>
QueryBlock<F> scratch_of(const attn_problem& p, const ForwardShape& shape, void* workspace, Index worker) {
  const std::size_t offset = static_cast<std::size_t>(worker) * Scratch<F>::bytes(shape);
  return {shape, static_cast<typename F::Acc>(p.scale), static_cast<char*>(workspace) + offset};
}

}  // namespace

template <class F>
std::size_t Fa2<F>::workspace(const attn_problem& p) {
  const ForwardShape shape(p);
  return thread_scratch<F>(p, shape.heads() * shape.query_blocks());
}

template <class F>
void Fa2<F>::compute(const attn_problem& p, void* workspace) {
  const ForwardShape shape(p);
  const Index blocks = shape.query_blocks();
  parallel_for(shape.threads, shape.heads() * blocks, [&](Index task, Index worker) {
    QueryBlock<F> block = scratch_of<F>(p, shape, workspace, worker);
    any_mask_block(p, shape, head_of(shape, task / blocks), shape.query_block(task % blocks), block);
  });
}

template <class F>
std::size_t Causal<F>::workspace(const attn_problem& p) {
  const ForwardShape shape(p);
  return thread_scratch<F>(p, shape.heads() * ceil_div(shape.query_blocks(), 2));
}

template <class F>
void Causal<F>::compute(const attn_problem& p, void* workspace) {
  const ForwardShape shape(p);
  const Index blocks = shape.query_blocks(), pairs = ceil_div(blocks, 2);
  parallel_for(shape.threads, shape.heads() * pairs, [&](Index task, Index worker) {
    QueryBlock<F> block = scratch_of<F>(p, shape, workspace, worker);
    const HeadIndex head = head_of(shape, task / pairs);
    const Index early = task % pairs, late = blocks - 1 - early;
    causal_block(p, shape, head, shape.query_block(early), block);
    if (late != early) causal_block(p, shape, head, shape.query_block(late), block);
  });
}

template struct Fa2<Fp64>;
template struct Fa2<Fp32>;
template struct Fa2<Fp16P16>;
template struct Fa2<Fp16P32>;
template struct Fa2<Bf16P16>;
template struct Fa2<Bf16P32>;
template struct Causal<Fp64>;
template struct Causal<Fp32>;
template struct Causal<Fp16P16>;
template struct Causal<Fp16P32>;
template struct Causal<Bf16P16>;
template struct Causal<Bf16P32>;

}  // namespace attn
