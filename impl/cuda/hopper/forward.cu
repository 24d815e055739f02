// Forward attention for sm_90a. What it takes, and which sizes it uses for which head dim.
#include <cinttypes>

#include "impl/cuda/hopper/kernel.cuh"
#include "impl/cuda/kernel.h"

namespace attn {

namespace hopper {

namespace {

using Tile64 = Tile<64, 3, 128, 4, 2, true>;
using Tile128 = Tile<128, 2, 128, 2, 2, true>;
using Tile256 = Tile<256, 2, 80, 2, 1, false>;

constexpr Index largest_dim = 256;
constexpr Index cache_bytes = Index{32} << 20;  // of keys and values that one section of heads may fill

Index padded_dim(const attn_problem& p) {
  const Index d = larger(p.q.shape[3], p.v.shape[3]);
  return d <= 64 ? 64 : d <= 128 ? 128 : 256;
}

// Calls f with the sizes for the problem's head dims.
template <class F>
auto with_tile(const attn_problem& p, F f) {
  switch (padded_dim(p)) {
    case 64:
      return f(Tile64{});
    case 128:
      return f(Tile128{});
    default:
      return f(Tile256{});
  }
}

Index query_blocks(const attn_problem& p, Index block_q) {
  return ceil_div(p.q.shape[2], block_q) * p.q.shape[1] * p.q.shape[0];
}

bool equal_work(const attn_problem& p) { return p.mask.causal == ATTN_CAUSAL_NONE && !p.mask.kv_len; }

BlockOrder order_of(const attn_problem& p, Index block_q) {
  const Index blocks = ceil_div(p.q.shape[2], block_q), heads = p.q.shape[0] * p.q.shape[1];
  const Index head_bytes = p.k.shape[2] * (p.q.shape[3] + p.v.shape[3]) * 2;
  const Index group = p.q.shape[1] / p.k.shape[1];
  // Equal work: the blocks of a head one after another. Unequal work: as many heads as the cache holds.
  const Index at_once = equal_work(p) ? 1 : larger(1, cache_bytes / larger(1, head_bytes)) * group;
  return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(heads),
          static_cast<std::uint32_t>(smaller(at_once, heads)), static_cast<std::uint32_t>(p.q.shape[1])};
}

bool takes_vectors(const attn_tensor& o) {
  const Index vector = o.dtype == ATTN_FP32 ? 2 : 8;  // elements of one store: 8 or 16 bytes
  if (reinterpret_cast<std::uintptr_t>(o.data) % 16 != 0 || o.stride[3] != 1) return false;
  return o.stride[0] % vector == 0 && o.stride[1] % vector == 0 && o.stride[2] % vector == 0;
}

bool check_dim(const char* name, Index d, Refusal& refusal) {
  if (d >= 32 && d <= largest_dim && d % 8 == 0) return true;
  return refusal.refuse("%s is %" PRId64 "; this kernel takes multiples of 8 from 32 to 256", name, d);
}

bool check_request(const char* name, Index asked, Index fixed, Refusal& refusal) {
  if (asked == 0 || asked == fixed) return true;
  return refusal.refuse("tiling.%s is %" PRId64 "; this kernel has %" PRId64 " for these head dims: leave it 0", name,
                        asked, fixed);
}

}  // namespace

template <class T, std::int32_t Format>
struct Forward {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = "hopper";

  static Requirements needs() { return {Format, ATTN_FP32}; }
  // The counter of query blocks, where they differ in work.
  static std::size_t workspace(const attn_problem& p) { return equal_work(p) ? 0 : sizeof(std::uint32_t); }

  static void refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    if (facts.major != 9) {
      refusal.refuse("this kernel is for sm_90a; the device is sm_%d%d: use fa2", facts.major, facts.minor);
      return;
    }
    if (!built_for_hopper<T, Tile128, false>()) {
      refusal.refuse("this build has no code for sm_90a: add 90a to its CUDA architectures, or use fa2");
      return;
    }
    if (!check_dim("d_qk", p.q.shape[3], refusal) || !check_dim("d_v", p.v.shape[3], refusal)) return;
    if (!check_mappable("q", p.q, refusal) || !check_mappable("k", p.k, refusal) || !check_mappable("v", p.v, refusal))
      return;
    with_tile(p, [&](auto tile) {
      check_request("block_q", p.tiling.block_q, tile.block_q, refusal);
      check_request("block_k", p.tiling.block_k, tile.block_k, refusal);
      check_request("splits", p.tiling.splits, 1, refusal);
      if (query_blocks(p, tile.block_q) >= INT64_C(1) << 31)
        refusal.refuse("the problem has 2^31 query blocks or more: use fa2");
    });
  }

  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    return with_tile(p, [&](auto tile) {
      using Sizes = decltype(tile);
      if (query_blocks(p, tile.block_q) == 0) return cudaSuccess;
      Parameters a{{},
                   {},
                   {},
                   ForwardView(p),
                   order_of(p, tile.block_q),
                   takes_vectors(p.o),
                   equal_work(p) ? nullptr : static_cast<std::uint32_t*>(workspace)};
      cudaError_t error = describe(p.q, group_rows, a.q);
      if (error == cudaSuccess) error = describe(p.k, tile.block_k, a.k);
      if (error == cudaSuccess) error = describe(p.v, tile.block_k, a.v);
      if (error != cudaSuccess) return error;
      return a.problem.tensor_masked() ? hopper::launch<T, Sizes, true>(a, facts.multiprocessors, stream)
                                       : hopper::launch<T, Sizes, false>(a, facts.multiprocessors, stream);
    });
  }
};

}  // namespace hopper

KernelEntry cuda_hopper(CudaFormat format) {
  using hopper::Forward;
  return format == CudaFormat::bf16 ? CudaFunctions<Forward<__nv_bfloat16, ATTN_BF16>>::entry()
                                    : CudaFunctions<Forward<__half, ATTN_FP16>>::entry();
}

}  // namespace attn
