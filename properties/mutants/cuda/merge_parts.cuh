// The second half of the readable CUDA kernel: the parts of a row become one, with weights exp(lse - max lse) divided
// by their sum.
#pragma once

#include "properties/mutants/cuda/row.cuh"

namespace attest::mutants {

// What every lane knows of the parts of a row.
struct PartWeights {
  float top, total;

  template <DeviceBug bug>
  static __device__ float lse_of(const RowPlan& plan, Index rows, Index row, Index part) {
    return plan.lse[bug == DeviceBug::combine_stride ? part * rows + row : row * plan.part_count + part];
  }
  template <DeviceBug bug>
  static __device__ PartWeights of(const RowPlan& plan, Index rows, Index row) {
    PartWeights w{kNegInf, 0};
    for (Index s = 0; s < plan.part_count; ++s) w.top = attn::max_or_nan(w.top, lse_of<bug>(plan, rows, row, s));
    for (Index s = 0; s < plan.part_count; ++s) w.total += w.weight(lse_of<bug>(plan, rows, row, s));
    return w;
  }
  __device__ float weight(float lse) const { return attn::weight_of(lse, attn::finite_max(top), 1.0f); }
  __device__ float inverse() const { return attn::is_empty(top) ? 0.0f : attn::reciprocal(total); }
  __device__ float lse() const { return attn::is_empty(top) ? top : top + logf(total); }
};

// One warp for each row, four rows in a block.
template <DeviceBug bug>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(const __grid_constant__ attn::ForwardView view, const RowPlan plan, const Index rows) {
  const Index row = static_cast<Index>(blockIdx.x) * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const Index i = row % view.tq, h = row / view.tq % view.q_heads, b = row / view.tq / view.q_heads;
  const Row<bug, float> at{view, b, h, i};
  const PartWeights w = PartWeights::of<bug>(plan, rows, row);
  for (Index e = lane; e < view.d_v; e += 32) {
    float sum = 0;
    for (Index s = 0; s < plan.part_count; ++s)
      sum = attn::fused(w.weight(PartWeights::lse_of<bug>(plan, rows, row, s)),
                        plan.o[(row * plan.part_count + s) * view.d_v + e], sum);
    at.store(e, sum * w.inverse());
  }
  if (lane == 0 && view.lse.data) *view.lse.row<float>(b, h, i) = w.lse();
}

// One block for each part of each row, all of which add to O. O is 0 before.
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(const __grid_constant__ attn::ForwardView view, const RowPlan plan, const Index rows) {
  const Index row = blockIdx.x / plan.part_count, part = blockIdx.x % plan.part_count;
  const Index i = row % view.tq, h = row / view.tq % view.q_heads, b = row / view.tq / view.q_heads;
  const PartWeights w = PartWeights::of<DeviceBug::none>(plan, rows, row);
  const float share = w.weight(plan.lse[row * plan.part_count + part]) * w.inverse();
  for (Index e = threadIdx.x; e < view.d_v; e += kThreads)
    atomicAdd(view.o.row<float>(b, h, i) + e * view.o.stride[3],
              share * plan.o[(row * plan.part_count + part) * view.d_v + e]);
  if (threadIdx.x == 0 && part == 0 && view.lse.data) *view.lse.row<float>(b, h, i) = w.lse();
}

__global__ void __launch_bounds__(kThreads) zero_kernel(const __grid_constant__ attn::ForwardView view) {
  const Index row = blockIdx.x;
  const Index i = row % view.tq, h = row / view.tq % view.q_heads, b = row / view.tq / view.q_heads;
  const Row<DeviceBug::none, float> at{view, b, h, i};
  for (Index e = threadIdx.x; e < view.d_v; e += kThreads) at.store(e, 0);
}

}  // namespace attest::mutants
