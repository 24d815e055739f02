// Launches of the readable CUDA kernel, bug by bug.
#include <cstdio>

#include "properties/mutants/cuda/merge_parts.cuh"

namespace attest::mutants {
namespace {

template <DeviceBug bug>
cudaError_t merge(const attn::ForwardView& view, const RowPlan& plan, Index rows, cudaStream_t stream) {
  if constexpr (bug == DeviceBug::atomic_order) {
    zero_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(view);
    add_parts_kernel<<<static_cast<unsigned>(rows * plan.part_count), kThreads, 0, stream>>>(view, plan, rows);
  } else {
    const Index blocks = bug == DeviceBug::last_rows_unwritten ? rows / kWarps : attn::ceil_div(rows, kWarps);
    if (blocks > 0) merge_kernel<bug><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(view, plan, rows);
  }
  return cudaGetLastError();
}

template <DeviceBug bug, DeviceFlavour flavour>
cudaError_t launch(const attn_problem& p, void* workspace) {
  using T = std::conditional_t<flavour == DeviceFlavour::fp16, __half, float>;
  const attn::ForwardView view(p);
  const Index rows = view.batch * view.q_heads * view.tq;
  if (rows == 0) return cudaSuccess;
  RowPlan plan{};
  plan.block_k = p.tiling.block_k > 0 ? p.tiling.block_k : kDeviceKeys;
  plan.tile_keys = attn::larger(1, attn::smaller(plan.block_k, view.tk));
  plan.parts = attn::plan_splits(view.tk, split_count(bug, flavour, p), plan.block_k);
  plan.part_count = attn::larger(1, plan.parts.used());
  if constexpr (flavour == DeviceFlavour::split) {
    plan.lse = static_cast<float*>(workspace);
    plan.o = plan.lse + rows * plan.part_count;
  }
  const auto stream = bug == DeviceBug::default_stream ? cudaStreamLegacy : static_cast<cudaStream_t>(p.stream);
  const int shared = static_cast<int>(shared_bytes(flavour, p));
  const auto kernel = row_kernel<bug, T>;
  if (shared > 48 * 1024)
    if (const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
        e != cudaSuccess)
      return e;
  kernel<<<static_cast<unsigned>(rows * plan.part_count), kThreads, static_cast<unsigned>(shared), stream>>>(view,
                                                                                                             plan);
  if (const cudaError_t e = cudaGetLastError(); e != cudaSuccess || flavour != DeviceFlavour::split) return e;
  return merge<bug>(view, plan, rows, stream);
}

using Launch = cudaError_t (*)(const attn_problem&, void*);

// One of each: a bug has one flavour.
Launch find(DeviceBug bug, DeviceFlavour flavour) {
  using enum DeviceBug;
  using enum DeviceFlavour;
  switch (bug) {
    case none:
      return flavour == fp32 ? launch<none, fp32> : flavour == fp16 ? launch<none, fp16> : launch<none, split>;
    case missing_barrier:
      return launch<missing_barrier, fp32>;
    case barrier_in_branch:
      return launch<barrier_in_branch, fp32>;
    case unwaited_copy:
      return launch<unwaited_copy, fp32>;
    case half_warp_reduction:
      return launch<half_warp_reduction, fp32>;
    case stale_maximum:
      return launch<stale_maximum, fp32>;
    case atomic_order:
      return launch<atomic_order, split>;
    case weights_read_past_tile:
      return launch<weights_read_past_tile, fp32>;
    case keys_read_past_end:
      return launch<keys_read_past_end, fp32>;
    case shared_uninitialised:
      return launch<shared_uninitialised, fp32>;
    case empty_split_unwritten:
      return launch<empty_split_unwritten, split>;
    case offset_32_bit:
      return launch<offset_32_bit, fp16>;
    case last_key_unsigned:
      return launch<last_key_unsigned, fp32>;
    case last_rows_unwritten:
      return launch<last_rows_unwritten, split>;
    case default_stream:
      return launch<default_stream, fp32>;
    case splits_by_batch:
      return launch<splits_by_batch, split>;
    case combine_stride:
      return launch<combine_stride, split>;
    case tail_zero_filled:
      return launch<tail_zero_filled, fp32>;
    case accumulator_in_16_bit:
      return launch<accumulator_in_16_bit, fp16>;
  }
  return nullptr;
}

}  // namespace

std::int32_t run_device_forward(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p, void* workspace, char* why,
                                std::size_t size) {
  const cudaError_t e = find(bug, flavour)(p, workspace);
  if (e == cudaSuccess) return ATTN_OK;
  std::snprintf(why, size, "%s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
  return ATTN_ERROR;
}

}  // namespace attest::mutants
