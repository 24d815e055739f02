// Flash-Decoding with mma.sync: split keys, grouped heads packed into one tile, partial results merged by LSE.
#include "impl/cuda/decode.cuh"

#include <atomic>

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

  static Index items(const attn_problem& p) { return p.k.shape[0] * p.k.shape[1] * row_tiles(p) * plan(p).used(); }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (!refuse_head_dim("d_qk", p.q.shape[3], refusal) || !refuse_head_dim("d_v", p.v.shape[3], refusal)) return false;
    // A block of queries is a block of packed rows.
    if (!refuse_block("block_q", p.tiling.block_q, packed_rows(p), decode_rows, refusal)) return false;
    if (!refuse_block("block_k", p.tiling.block_k, p.k.shape[2], decode_block_k, refusal)) return false;
    if (!with_tile_width(ForwardView(p),
                         [&]<int D>() { return refuse_shared(sizeof(DecodeMemory<D, 2>), facts, refusal); }))
      return false;
    return refuse_grid(larger(rows(p), items(p)), refusal);
  }

  static std::size_t workspace(const attn_problem& p) { return Partials::bytes(rows(p), plan(p).used(), p.v.shape[3]); }

  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    const TileProblem problem = problem_of(p);
    const Partials partials(workspace, rows(p), plan(p).used(), p.v.shape[3]);
    const DecodeGrid grid{plan(p),
                          static_cast<unsigned>(partials.splits),
                          static_cast<unsigned>(p.k.shape[1] > 0 ? p.q.shape[1] / p.k.shape[1] : 0),
                          static_cast<unsigned>(p.k.shape[1]),
                          static_cast<unsigned>(packed_rows(p)),
                          static_cast<unsigned>(row_tiles(p)),
                          static_cast<unsigned>(items(p))};
    const cudaError_t error = grid.items == 0 ? cudaSuccess : with_tile_width(problem.view, [&]<int D>() {
      // Three slots where they fit: a tile is used while two are under way.
      return sizeof(DecodeMemory<D, 3>) <= facts.shared_per_block
                 ? launch_items<D, 3>(problem, grid, partials, facts, stream)
                 : launch_items<D, 2>(problem, grid, partials, facts, stream);
    });
    if (error != cudaSuccess) return error;
    return launch_combine<T>(problem.view, partials, facts.overlaps, stream);
  }

 private:
  // As many blocks as the device holds at a time; each takes items in turn.
  template <int D, int Slots>
  static cudaError_t launch_items(const TileProblem& problem, const DecodeGrid& grid, const Partials& partials,
                                  const DeviceFacts& facts, cudaStream_t stream) {
    constexpr std::size_t shared = sizeof(DecodeMemory<D, Slots>);
    const auto kernel = decode_kernel<T, D, Slots>;
    const cudaError_t error = allow_shared(kernel, shared);
    if (error != cudaSuccess) return error;
    static std::atomic<int> known[most_devices];
    std::atomic<int>& resident = known[facts.device];  // on a multiprocessor
    if (resident == 0) {
      int found = 0;
      const cudaError_t refused =
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, kernel, DecodeTeam::size, shared);
      if (refused != cudaSuccess) return refused;
      resident = static_cast<int>(larger(1, found));
    }
    const Index blocks = smaller(grid.items, Index{resident} * facts.multiprocessors);
    return launch_overlapping(kernel, dim3(static_cast<unsigned>(blocks)), DecodeTeam::size, shared, stream,
                              facts.overlaps, problem, grid, partials);
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
