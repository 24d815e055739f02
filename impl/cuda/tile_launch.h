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
  bool q_chunked, k_chunked, v_chunked;
  bool o_paired;  // two neighbouring elements of O are written at once

  TileProblem(const attn_problem& p, Index most_q, Index most_k)
      : view(p),
        block_q(p.tiling.block_q > 0 ? smaller(p.tiling.block_q, most_q) : most_q),
        block_k(p.tiling.block_k > 0 ? smaller(p.tiling.block_k, most_k) : most_k),
        q_chunked(in_chunks(p.q)),
        k_chunked(in_chunks(p.k)),
        v_chunked(in_chunks(p.v)),
        o_paired(in_pairs(p.o)) {}

 private:
  static bool in_pairs(const attn_tensor& t) {
    const std::uintptr_t pair = t.dtype == ATTN_FP32 ? 8 : 4;
    if (reinterpret_cast<std::uintptr_t>(t.data) % pair != 0 || t.stride[3] != 1) return false;
    for (int axis = 0; axis < 3; ++axis)
      if (t.shape[axis] > 1 && t.stride[axis] % 2 != 0) return false;
    return true;
  }
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
