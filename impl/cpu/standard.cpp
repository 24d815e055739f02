// The baseline: three passes over each row.
#include "impl/cpu/forward.h"
#include "impl/cpu/parallel.h"
#include "impl/cpu/query_block.h"

namespace attn {

namespace {

template <class F>
void standard_block(const attn_problem& p, const ForwardShape& shape, const HeadIndex& head, IndexRange rows,
                    QueryBlock<F>& block) {
  const Visibility see = visibility_of(p, shape, head.batch);
  const TensorMask mask(p.mask, head);
  block.clear(rows.size());
  block.load_queries(p, head, rows);
  const IndexRange visited = visited_range(see, rows, {0, shape.tk});
  const Index tiles = block_count(visited, shape.block_k);
  const auto full = [&](IndexRange keys) { return classify(see, rows, keys) == TileClass::full; };
  for (Index t = 0; t < tiles; ++t) {
    const IndexRange keys = block_range(visited, shape.block_k, t);
    block.load_keys(p, head, keys);
    block.raise_max(rows, keys, see, mask, full(keys));
  }
  for (Index t = 0; t < tiles; ++t) {
    const IndexRange keys = block_range(visited, shape.block_k, t);
    block.load_keys(p, head, keys);
    block.load_values(p, head, keys);
    block.template fold<Rescale::fixed_max>(rows, keys, see, mask, full(keys));
  }
  for (Index r = 0; r < rows.size(); ++r) {
    const auto lse = block.finish(r, true);
    store_row<typename F::Storage>(p.o, head, rows.begin + r, block.acc + r * block.d_v, block.d_v);
    store_lse(p.lse, head, rows.begin + r, lse);
  }
}

}  // namespace

template <class F>
std::size_t Standard<F>::workspace(const attn_problem& p) {
  const ForwardShape shape(p);
  const Index workers = smaller(shape.threads, shape.heads() * shape.query_blocks());
  return static_cast<std::size_t>(workers) * QueryBlock<F>::bytes(shape);
}

template <class F>
void Standard<F>::compute(const attn_problem& p, void* workspace) {
  const ForwardShape shape(p);
  const Index blocks = shape.query_blocks();
  parallel_for(shape.threads, shape.heads() * blocks, [&](Index task, Index worker) {
    char* scratch = static_cast<char*>(workspace) + static_cast<std::size_t>(worker) * QueryBlock<F>::bytes(shape);
    QueryBlock<F> block(shape, static_cast<typename F::Acc>(p.scale), scratch);
    standard_block(p, shape, head_of(shape, task / blocks), shape.query_block(task % blocks), block);
  });
}

template struct Standard<Fp64>;
template struct Standard<Fp32>;
template struct Standard<Fp16P16>;
template struct Standard<Fp16P32>;
template struct Standard<Bf16P16>;
template struct Standard<Bf16P32>;

}  // namespace attn
