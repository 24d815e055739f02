// Flash-Decoding with mma.sync: split keys, grouped heads packed into one tile, partial results merged by LSE.
#include "impl/cuda/decode.cuh"
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt.h"
#include "impl/cuda/splits.h"

namespace attn {

namespace {

template <class T>
struct DecodeTiles {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = "Flash-Decoding";

  static Requirements needs() { return {std::is_same_v<T, __half> ? ATTN_FP16 : ATTN_BF16, ATTN_FP32, false, 0}; }

  static TileProblem problem_of(const attn_problem& p) { return {p, decode_rows, decode_block_k}; }
  static SplitPlan plan(const attn_problem& p) {
    return plan_splits(p.k.shape[2], splits_for(p), problem_of(p).block_k);
  }
  static Index rows(const attn_problem& p) { return p.q.shape[0] * p.q.shape[1] * p.q.shape[2]; }
  static Index packed_rows(const attn_problem& p) {
    return p.k.shape[1] > 0 ? p.q.shape[1] / p.k.shape[1] * p.q.shape[2] : 0;
  }
  static Index row_tiles(const attn_problem& p) { return block_count({0, packed_rows(p)}, problem_of(p).block_q); }

  static Index blocks(const attn_problem& p) { return p.k.shape[0] * p.k.shape[1] * row_tiles(p) * plan(p).used(); }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (!refuse_head_dim("d_qk", p.q.shape[3], refusal) || !refuse_head_dim("d_v", p.v.shape[3], refusal)) return false;
    // A block of queries is a block of packed rows.
    if (!refuse_block("block_q", p.tiling.block_q, packed_rows(p), decode_rows, refusal)) return false;
    if (!refuse_block("block_k", p.tiling.block_k, p.k.shape[2], decode_block_k, refusal)) return false;
    if (!with_tile_width(ForwardView(p),
                         [&]<int D>() { return refuse_shared(sizeof(DecodeMemory<D>), facts, refusal); }))
      return false;
    return refuse_grid(larger(rows(p), blocks(p)), refusal);
  }

  static std::size_t workspace(const attn_problem& p) { return Partials::bytes(rows(p), plan(p).used(), p.v.shape[3]); }

  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    const TileProblem problem = problem_of(p);
    const Partials partials(workspace, rows(p), plan(p).used(), p.v.shape[3]);
    const DecodeGrid grid{static_cast<unsigned>(p.k.shape[1] > 0 ? p.q.shape[1] / p.k.shape[1] : 0),
                          static_cast<unsigned>(p.k.shape[1]), static_cast<unsigned>(packed_rows(p)),
                          static_cast<unsigned>(row_tiles(p))};
    const Index count = blocks(p);
    const cudaError_t error = count == 0 ? cudaSuccess : with_tile_width(problem.view, [&]<int D>() {
      const cudaError_t refused = allow_shared(decode_kernel<T, D>, sizeof(DecodeMemory<D>));
      if (refused != cudaSuccess) return refused;
      return launch_overlapping(decode_kernel<T, D>, dim3(static_cast<unsigned>(count)), DecodeTeam::size,
                                sizeof(DecodeMemory<D>), stream, facts.major >= 9, problem, grid, plan(p), partials);
    });
    if (error != cudaSuccess) return error;
    return launch_combine<T>(problem.view, partials, facts.major >= 9, stream);
  }
};

}  // namespace

KernelEntry cuda_decode(CudaFormat format) {
  switch (format) {
    case CudaFormat::fp16:
      return CudaFunctions<DecodeTiles<__half>>::entry();
    case CudaFormat::bf16:
      return CudaFunctions<DecodeTiles<__nv_bfloat16>>::entry();
    default:
      return cuda_decode_fp32();
  }
}

}  // namespace attn
