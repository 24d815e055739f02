// What the tile kernels check and choose on the host.
#pragma once

#include "impl/cuda/launch.h"
#include "impl/cuda/tile_memory.cuh"
#include "impl/reject.h"

namespace attn {

// A problem with the way its tensors are copied to shared memory and its blocks.
struct TileProblem {
  ForwardView view;
  Index block_q, block_k;
  RowFormat q_format, k_format, v_format;
  bool o_chunked;                         // O is written 16 bytes at a time
  unsigned query_blocks, q_heads, group;  // of a head; of a batch entry; query heads to a kv head

  TileProblem(const attn_problem& p, Index most_q, Index most_k)
      : view(p),
        block_q(p.tiling.block_q > 0 ? smaller(p.tiling.block_q, most_q) : most_q),
        block_k(p.tiling.block_k > 0 ? smaller(p.tiling.block_k, most_k) : most_k),
        q_format(format_of(p.q)),
        k_format(format_of(p.k)),
        v_format(format_of(p.v)),
        o_chunked(in_chunks(p.o)),
        query_blocks(static_cast<unsigned>(block_count({0, view.tq}, block_q))),
        q_heads(static_cast<unsigned>(view.q_heads)),
        group(static_cast<unsigned>(view.kv_heads > 0 ? view.q_heads / view.kv_heads : 1)) {}

 private:
  static RowFormat format_of(const attn_tensor& t) { return {static_cast<int>(t.shape[3]), t.stride[3], in_chunks(t)}; }
};

inline bool refuse_head_dim(const char* name, std::int64_t d, Refusal& refusal) {
  if (d >= 32 && d <= 256 && d % 8 == 0) return true;
  return refusal.refuse("%s is %lld; the tensor-core kernels take multiples of 8 from 32 to 256", name,
                        static_cast<long long>(d));
}

// A block may be longer than what there is of it; else it must fit the kernel's tile.
inline bool refuse_block(const char* name, std::int64_t asked, std::int64_t length, std::int64_t most,
                         Refusal& refusal) {
  if (asked <= most || length <= most) return true;
  return refusal.refuse("%s is %lld; this kernel's tile holds at most %lld: ask for that or less, or leave it 0", name,
                        static_cast<long long>(asked), static_cast<long long>(most));
}

inline bool refuse_grid(Index blocks, Refusal& refusal) {
  if (blocks <= 0x7fffffff) return true;
  return refusal.refuse("the problem needs %lld thread blocks; a CUDA grid has at most 2^31 - 1",
                        static_cast<long long>(blocks));
}

// Tiles of keys are counted in 32 bits.
inline bool refuse_length(Index keys, Refusal& refusal) {
  if (keys <= 0x7fffffff) return true;
  return refusal.refuse("Tk is %lld; this kernel takes at most 2^31 - 1 keys", static_cast<long long>(keys));
}

inline bool refuse_shared(std::size_t bytes, const DeviceFacts& facts, Refusal& refusal) {
  if (bytes <= facts.shared_per_block) return true;
  return refusal.refuse("these head dims need %zu bytes of shared memory; a block of this device has %zu", bytes,
                        facts.shared_per_block);
}

// Calls launch.template operator()<D> with the smallest tile width that both head dims fit into.
template <class Launch>
auto with_tile_width(const ForwardView& view, Launch launch) {
  const Index d = larger(view.d_qk, view.d_v);
  if (d <= 64) return launch.template operator()<64>();
  if (d <= 128) return launch.template operator()<128>();
  return launch.template operator()<256>();
}

}  // namespace attn
