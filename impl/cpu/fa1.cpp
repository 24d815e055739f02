// FlashAttention-1: keys outside, queries inside. Between blocks the state of a row lives in memory: m and l in the
// workspace, O in the output tensor, or in the workspace when the output has 16 bits (rounding it at every block would
// be another Contract).
#include "impl/cpu/forward.h"
#include "impl/cpu/parallel.h"
#include "impl/cpu/query_block.h"

namespace attn {

namespace {

std::size_t to_line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Query blocks are dealt out in slabs when there are fewer heads than threads; every slab walks all keys.
struct Slabs {
  Index per_head, blocks_each;
  explicit Slabs(const ForwardShape& shape) {
    const Index blocks = larger(shape.query_blocks(), 1);
    const Index wanted = smaller(ceil_div(shape.threads, larger(shape.heads(), 1)), blocks);
    blocks_each = ceil_div(blocks, wanted);
    per_head = ceil_div(blocks, blocks_each);
  }
};

template <class F>
struct Memory {
  using Acc = typename F::Acc;
  static constexpr std::size_t value = sizeof(Acc);

  Acc *m, *l, *o;
  attn_tensor view;  // of O in accumulator format
  char* scratch;

  static bool keeps_o(const attn_problem& p) { return p.o.dtype != dtype_of<Acc>; }

  // Bytes before the scratch of the threads.
  static std::size_t bytes(const attn_problem& p) {
    const ForwardShape shape(p);
    const std::size_t rows = static_cast<std::size_t>(shape.rows());
    const std::size_t o = keeps_o(p) ? rows * static_cast<std::size_t>(shape.d_v) * value : 0;
    return 2 * to_line(rows * value) + to_line(o);
  }

  Memory(const attn_problem& p, const ForwardShape& shape, void* workspace) : view(p.o) {
    const std::size_t row_bytes = to_line(static_cast<std::size_t>(shape.rows()) * value);
    char* base = static_cast<char*>(workspace);
    m = reinterpret_cast<Acc*>(base);
    l = reinterpret_cast<Acc*>(base + row_bytes);
    o = reinterpret_cast<Acc*>(base + 2 * row_bytes);
    scratch = base + bytes(p);
    if (keeps_o(p)) {
      view.data = o;
      view.dtype = dtype_of<Acc>;
      view.stride[3] = 1;
      view.stride[2] = shape.d_v;
      view.stride[1] = shape.tq * shape.d_v;
      view.stride[0] = shape.q_heads * shape.tq * shape.d_v;
    }
  }

  Index row_of(const ForwardShape& shape, const HeadIndex& head, Index i) const {
    return (head.batch * shape.q_heads + head.q_head) * shape.tq + i;
  }

  void load(const ForwardShape& shape, const HeadIndex& head, IndexRange rows, QueryBlock<F>& block) const {
    const Index first = row_of(shape, head, rows.begin);
    for (Index r = 0; r < rows.size(); ++r) {
      block.m[r] = m[first + r];
      block.l[r] = l[first + r];
    }
    pack_rows<Acc>(view, head.batch, head.q_head, rows, block.d_v, block.acc);
  }
  void store(const ForwardShape& shape, const HeadIndex& head, IndexRange rows, const QueryBlock<F>& block) const {
    const Index first = row_of(shape, head, rows.begin);
    for (Index r = 0; r < rows.size(); ++r) {
      m[first + r] = block.m[r];
      l[first + r] = block.l[r];
      store_row<Acc>(view, head, rows.begin + r, block.acc + r * block.d_v, block.d_v);
    }
  }
};

template <class F>
void fa1_slab(const attn_problem& p, const ForwardShape& shape, const HeadIndex& head, IndexRange blocks,
              const Memory<F>& memory, QueryBlock<F>& block) {
  const Visibility see = visibility_of(p, shape, head.batch);
  const TensorMask mask(p.mask, head);
  for (Index b = blocks.begin; b < blocks.end; ++b) {
    const IndexRange rows = shape.query_block(b);
    block.clear(rows.size());
    memory.store(shape, head, rows, block);
  }
  const IndexRange slab_rows{shape.query_block(blocks.begin).begin, shape.query_block(blocks.end - 1).end};
  const IndexRange visited = visited_range(see, slab_rows, {0, shape.tk});
  for (Index t = 0; t < block_count(visited, shape.block_k); ++t) {
    const IndexRange keys = block_range(visited, shape.block_k, t);
    block.load_keys(p, head, keys);
    block.load_values(p, head, keys);
    for (Index b = blocks.begin; b < blocks.end; ++b) {
      const IndexRange rows = shape.query_block(b);
      const TileClass tile = classify(see, rows, keys);
      if (tile == TileClass::skip) continue;
      block.load_queries(p, head, rows);
      memory.load(shape, head, rows, block);
      block.template fold<Rescale::every_block>(rows, keys, see, mask, tile == TileClass::full);
      memory.store(shape, head, rows, block);
    }
  }
  // O is done; what is left is LSE, and the output format.
  for (Index b = blocks.begin; b < blocks.end; ++b) {
    const IndexRange rows = shape.query_block(b);
    memory.load(shape, head, rows, block);
    for (Index r = 0; r < rows.size(); ++r) {
      store_lse(p.lse, head, rows.begin + r, block.finish(r, false));
      if (Memory<F>::keeps_o(p))
        store_row<typename F::Storage>(p.o, head, rows.begin + r, block.acc + r * block.d_v, block.d_v);
    }
  }
}

}  // namespace

template <class F>
std::size_t Fa1<F>::workspace(const attn_problem& p) {
  const ForwardShape shape(p);
  if (shape.rows() == 0) return 0;
  const Index workers = smaller(shape.threads, shape.heads() * Slabs(shape).per_head);
  return Memory<F>::bytes(p) + static_cast<std::size_t>(workers) * QueryBlock<F>::bytes(shape);
}

template <class F>
void Fa1<F>::compute(const attn_problem& p, void* workspace) {
  const ForwardShape shape(p);
  if (shape.rows() == 0) return;
  const Slabs slabs(shape);
  const Memory<F> memory(p, shape, workspace);
  parallel_for(shape.threads, shape.heads() * slabs.per_head, [&](Index task, Index worker) {
    char* scratch = memory.scratch + static_cast<std::size_t>(worker) * QueryBlock<F>::bytes(shape);
    QueryBlock<F> block(shape, static_cast<typename F::Acc>(p.scale), scratch);
    const IndexRange blocks = block_range({0, shape.query_blocks()}, slabs.blocks_each, task % slabs.per_head);
    fa1_slab(p, shape, head_of(shape, task / slabs.per_head), blocks, memory, block);
  });
}

template struct Fa1<Fp64>;
template struct Fa1<Fp32>;
template struct Fa1<Fp16P16>;
template struct Fa1<Fp16P32>;
template struct Fa1<Bf16P16>;
template struct Fa1<Bf16P32>;

}  // namespace attn
