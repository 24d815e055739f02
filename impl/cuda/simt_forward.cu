// FlashAttention-2, its causal variant and Flash-Decoding in fp32.
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt.h"
#include "impl/cuda/simt_forward.cuh"
#include "impl/cuda/splits.h"

namespace attn {

namespace {

template <bool NeedsCausal>
struct SimtFa2 {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = NeedsCausal ? "causal attention in fp32" : "FlashAttention-2 in fp32";

  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, NeedsCausal, 0}; }
  static Index blocks(const SimtProblem& s) { return s.packed_heads() * s.query_blocks(); }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (!refuse_simt(p, p.q.shape[2], facts, refusal)) return false;
    return with_simt_tile(p, p.q.shape[2], facts, [&]<int Rows, int D>() {
      return refuse_simt_grid(blocks({p, 1, SimtMemory<Rows, D>::block_q}), refusal);
    });
  }
  static std::size_t workspace(const attn_problem&) { return 0; }

  static cudaError_t launch(const attn_problem& p, void*, const DeviceFacts& facts, cudaStream_t stream) {
    return with_simt_tile(p, p.q.shape[2], facts, [&]<int Rows, int D>() {
      using Memory = SimtMemory<Rows, D>;
      const SimtProblem s(p, 1, Memory::block_q);
      const Index count = blocks(s);
      if (count == 0) return cudaSuccess;
      const auto kernel = simt_forward_kernel<Rows, D>;
      const cudaError_t error = allow_shared(kernel, sizeof(Memory));
      if (error != cudaSuccess) return error;
      kernel<<<static_cast<unsigned>(count), simt_threads, sizeof(Memory), stream>>>(
          s, SplitPlan{}, Partials(nullptr, 0, 0, 0), s.view.causal != CausalAlignment::none);
      return cudaGetLastError();
    });
  }
};

struct SimtDecode {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = "Flash-Decoding in fp32";

  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, false, 0}; }
  static Index rows(const attn_problem& p) { return p.q.shape[0] * p.q.shape[1] * p.q.shape[2]; }
  static Index group(const attn_problem& p) { return p.k.shape[1] > 0 ? larger(p.q.shape[1] / p.k.shape[1], 1) : 1; }
  static SplitPlan plan(const attn_problem& p) {
    const Index block = p.tiling.block_k > 0 ? smaller(p.tiling.block_k, simt_block_k) : simt_block_k;
    return plan_splits(p.k.shape[2], splits_for(p), block);
  }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    const Index packed = group(p) * p.q.shape[2];
    if (!refuse_simt(p, packed, facts, refusal)) return false;
    return with_simt_tile(p, packed, facts, [&]<int Rows, int D>() {
      const SimtProblem s(p, group(p), SimtMemory<Rows, D>::block_q);
      return refuse_simt_grid(larger(rows(p), s.packed_heads() * s.query_blocks() * plan(p).used()), refusal);
    });
  }
  static std::size_t workspace(const attn_problem& p) { return Partials::bytes(rows(p), plan(p).used(), p.v.shape[3]); }

  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    const Partials partials(workspace, rows(p), plan(p).used(), p.v.shape[3]);
    const cudaError_t error = with_simt_tile(p, group(p) * p.q.shape[2], facts, [&]<int Rows, int D>() {
      using Memory = SimtMemory<Rows, D>;
      const SimtProblem s(p, group(p), Memory::block_q);
      const Index count = s.packed_heads() * s.query_blocks() * partials.splits;
      if (count == 0) return cudaSuccess;
      const auto kernel = simt_forward_kernel<Rows, D>;
      const cudaError_t refused = allow_shared(kernel, sizeof(Memory));
      if (refused != cudaSuccess) return refused;
      kernel<<<static_cast<unsigned>(count), simt_threads, sizeof(Memory), stream>>>(s, plan(p), partials, false);
      return cudaGetLastError();
    });
    return error == cudaSuccess ? launch_combine<float>(ForwardView(p), partials, facts.overlaps, stream) : error;
  }
};

}  // namespace

KernelEntry cuda_fa2_fp32() { return CudaFunctions<SimtFa2<false>>::entry(); }
KernelEntry cuda_causal_fp32() { return CudaFunctions<SimtFa2<true>>::entry(); }
KernelEntry cuda_decode_fp32() { return CudaFunctions<SimtDecode>::entry(); }

}  // namespace attn
