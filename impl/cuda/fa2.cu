// FlashAttention-2 (Dao, arXiv 2307.08691) with mma.sync, and its causal variant: queries outside, keys inside, one
// division at the end. A block of four warps shares every tile of keys; K of the next tile is fetched during the
// softmax and P.V, V during the scores.
#include "impl/cuda/fa2.cuh"
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt.h"
#include "impl/cuda/tile_launch.h"

namespace attn {

namespace {

template <class T, bool NeedsCausal>
struct Fa2Tiles {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = NeedsCausal ? "causal attention" : "FlashAttention-2";

  static Requirements needs() { return {std::is_same_v<T, __half> ? ATTN_FP16 : ATTN_BF16, ATTN_FP32, NeedsCausal, 0}; }

  template <class Shape>
  static Index blocks(const attn_problem& p) {
    const TileProblem problem(p, Shape::block_q, Shape::block_k);
    return problem.view.batch * problem.view.q_heads * block_count({0, problem.view.tq}, problem.block_q);
  }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (!refuse_head_dim("d_qk", p.q.shape[3], refusal) || !refuse_head_dim("d_v", p.v.shape[3], refusal)) return false;
    return with_tile_width(ForwardView(p), [&]<int D>() {
      using Shape = Fa2Shape<D>;
      return refuse_length(p.k.shape[2], refusal) &&
             refuse_block("block_q", p.tiling.block_q, p.q.shape[2], Shape::block_q, refusal) &&
             refuse_block("block_k", p.tiling.block_k, p.k.shape[2], Shape::block_k, refusal) &&
             refuse_shared(sizeof(Fa2Memory<D>), facts, refusal) && refuse_grid(blocks<Shape>(p), refusal);
    });
  }
  static std::size_t workspace(const attn_problem&) { return 0; }

  static cudaError_t launch(const attn_problem& p, void*, const DeviceFacts&, cudaStream_t stream) {
    return with_tile_width(ForwardView(p), [&]<int D>() {
      using Shape = Fa2Shape<D>;
      const Index count = blocks<Shape>(p);
      if (count == 0) return cudaSuccess;
      const cudaError_t error = allow_shared(fa2_kernel<T, D>, sizeof(Fa2Memory<D>));
      if (error != cudaSuccess) return error;
      // Rows of a causal mask get longer; the longest blocks go first, so that the short ones fill the gaps at the end.
      const bool last_first = ForwardView(p).causal != CausalAlignment::none;
      fa2_kernel<T, D><<<static_cast<unsigned>(count), BlockTeam::size, sizeof(Fa2Memory<D>), stream>>>(
          TileProblem(p, Shape::block_q, Shape::block_k), last_first);
      return cudaGetLastError();
    });
  }
};

}  // namespace

KernelEntry cuda_fa2(CudaFormat format) {
  switch (format) {
    case CudaFormat::fp16:
      return CudaFunctions<Fa2Tiles<__half, false>>::entry();
    case CudaFormat::bf16:
      return CudaFunctions<Fa2Tiles<__nv_bfloat16, false>>::entry();
    default:
      return cuda_fa2_fp32();
  }
}

KernelEntry cuda_causal(CudaFormat format) {
  switch (format) {
    case CudaFormat::fp16:
      return CudaFunctions<Fa2Tiles<__half, true>>::entry();
    case CudaFormat::bf16:
      return CudaFunctions<Fa2Tiles<__nv_bfloat16, true>>::entry();
    default:
      return cuda_causal_fp32();
  }
}

}  // namespace attn
