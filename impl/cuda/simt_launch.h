// What the SIMT forward kernels check and choose on the host.
#pragma once

#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/launch.h"
#include "impl/cuda/simt_copy.cuh"
#include "impl/cuda/simt_tile.cuh"
#include "impl/reject.h"

namespace attn {

// A problem with its blocks and the way its tensors are copied to shared memory. A block's rows are packed rows: for
// each query in turn, the `group` heads that read one kv head. group 1: rows of one head.
struct SimtProblem {
  ForwardView view;
  Index group, block_q, block_k;
  bool q_by_fours, k_by_fours, v_by_fours, o_by_fours;

  SimtProblem(const attn_problem& p, Index group_, Index most_q)
      : view(p),
        group(group_),
        block_q(p.tiling.block_q > 0 ? smaller(p.tiling.block_q, most_q) : most_q),
        block_k(p.tiling.block_k > 0 ? smaller(p.tiling.block_k, simt_block_k) : simt_block_k),
        q_by_fours(rows_by_fours(p.q)),
        k_by_fours(rows_by_fours(p.k)),
        v_by_fours(rows_by_fours(p.v)),
        o_by_fours(rows_by_fours(p.o)) {}

  ATTN_HOST_DEVICE Index packed_rows() const { return view.tq * group; }
  ATTN_HOST_DEVICE Index query_blocks() const { return block_count({0, packed_rows()}, block_q); }
  ATTN_HOST_DEVICE Index packed_heads() const { return view.batch * (view.q_heads / group); }
};

// Calls launch.template operator()<Rows, D>() with the tile width that both head dims fit into and the most rows to a
// thread that `rows` rows need and shared memory holds. More rows read K and V from shared memory less often.
template <class Launch>
auto with_simt_tile(const attn_problem& p, Index rows, const DeviceFacts& facts, Launch launch) {
  const Index d = larger(p.q.shape[3], p.v.shape[3]);
  const auto fits = [&](std::size_t bytes) { return bytes <= facts.shared_per_block; };
  const bool few = rows <= SimtMemory<1, 64>::block_q, some = rows <= SimtMemory<4, 64>::block_q;
  if (d <= 64) {
    if (few) return launch.template operator()<1, 64>();
    if (some || !fits(sizeof(SimtMemory<8, 64>))) return launch.template operator()<4, 64>();
    return launch.template operator()<8, 64>();
  }
  if (d <= 128) {
    if (few || !fits(sizeof(SimtMemory<4, 128>))) return launch.template operator()<1, 128>();
    if (some || !fits(sizeof(SimtMemory<8, 128>))) return launch.template operator()<4, 128>();
    return launch.template operator()<8, 128>();
  }
  if (few || !fits(sizeof(SimtMemory<4, 256>))) return launch.template operator()<1, 256>();
  return launch.template operator()<4, 256>();
}

inline bool refuse_simt(const attn_problem& p, Index rows, const DeviceFacts& facts, Refusal& refusal) {
  for (const Index d : {p.q.shape[3], p.v.shape[3]})
    if (d < 32 || d > 256 || d % 8 != 0)
      return refusal.refuse("a head dim is %lld; the CUDA kernels take multiples of 8 from 32 to 256",
                            static_cast<long long>(d));
  if (p.tiling.block_k > simt_block_k && p.k.shape[2] > simt_block_k)
    return refusal.refuse(
        "block_k is %lld; this kernel's tile holds at most %d keys: ask for that or less, or leave it 0",
        static_cast<long long>(p.tiling.block_k), simt_block_k);
  return with_simt_tile(p, rows, facts, [&]<int Rows, int D>() {
    using Memory = SimtMemory<Rows, D>;
    if (p.tiling.block_q > Memory::block_q && rows > Memory::block_q)
      return refusal.refuse(
          "block_q is %lld; this kernel's tile holds at most %d rows: ask for that or less, or leave it 0",
          static_cast<long long>(p.tiling.block_q), Memory::block_q);
    if (sizeof(Memory) <= facts.shared_per_block) return true;
    return refusal.refuse("these head dims need %zu bytes of shared memory; a block of this device has %zu",
                          sizeof(Memory), facts.shared_per_block);
  });
}

inline bool refuse_simt_grid(Index blocks, Refusal& refusal) {
  if (blocks <= 0x7fffffff) return true;
  return refusal.refuse("the problem needs %lld thread blocks; a CUDA grid has at most 2^31 - 1",
                        static_cast<long long>(blocks));
}

}  // namespace attn
