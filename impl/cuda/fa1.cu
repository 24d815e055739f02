// FlashAttention-1 (Dao et al., arXiv 2205.14135) with mma.sync: keys outside, queries inside, O normalised at every
// block.
#include "impl/cuda/fa1.cuh"
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt.h"

namespace attn {

namespace {

template <class T>
struct Fa1Tiles {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = "FlashAttention-1";

  static Requirements needs() { return {std::is_same_v<T, __half> ? ATTN_FP16 : ATTN_BF16, ATTN_FP32, false, 0}; }

  static TileProblem problem_of(const attn_problem& p) { return {p, fa1_block_q, fa1_block_k}; }
  static Index rows(const attn_problem& p) { return p.q.shape[0] * p.q.shape[1] * p.q.shape[2]; }
  static Index query_blocks(const attn_problem& p) { return block_count({0, p.q.shape[2]}, problem_of(p).block_q); }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (!refuse_head_dim("d_qk", p.q.shape[3], refusal) || !refuse_head_dim("d_v", p.v.shape[3], refusal)) return false;
    if (!refuse_block("block_q", p.tiling.block_q, p.q.shape[2], fa1_block_q, refusal)) return false;
    if (!refuse_block("block_k", p.tiling.block_k, p.k.shape[2], fa1_block_k, refusal)) return false;
    if (!with_tile_width(ForwardView(p), [&]<int D>() { return refuse_shared(sizeof(Fa1Memory<D>), facts, refusal); }))
      return false;
    return refuse_grid(p.q.shape[0] * p.q.shape[1] * query_blocks(p), refusal);
  }

  static std::size_t workspace(const attn_problem& p) { return Fa1State::bytes(rows(p), p.v.shape[3]); }

  // The query blocks of a head are dealt out in slabs when there are fewer heads than places for thread blocks; every
  // slab walks all keys. The bits do not depend on it.
  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    const Index heads = p.q.shape[0] * p.q.shape[1], blocks = query_blocks(p);
    if (heads == 0 || blocks == 0) return cudaSuccess;
    const Index wanted = larger(1, smaller(ceil_div(2 * facts.multiprocessors, heads), blocks));
    const Index each = ceil_div(blocks, wanted), slabs = ceil_div(blocks, each);
    return with_tile_width(ForwardView(p), [&]<int D>() {
      const cudaError_t error = allow_shared(fa1_kernel<T, D>, sizeof(Fa1Memory<D>));
      if (error != cudaSuccess) return error;
      fa1_kernel<T, D><<<static_cast<unsigned>(heads * slabs), BlockTeam::size, sizeof(Fa1Memory<D>), stream>>>(
          problem_of(p), static_cast<unsigned>(each), Fa1State(workspace, rows(p), p.v.shape[3]));
      return cudaGetLastError();
    });
  }
};

}  // namespace

KernelEntry cuda_fa1(CudaFormat format) {
  switch (format) {
    case CudaFormat::fp16:
      return CudaFunctions<Fa1Tiles<__half>>::entry();
    case CudaFormat::bf16:
      return CudaFunctions<Fa1Tiles<__nv_bfloat16>>::entry();
    default:
      return cuda_fa1_fp32();
  }
}

}  // namespace attn
