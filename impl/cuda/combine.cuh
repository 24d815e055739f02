// The second half of Flash-Decoding: partial results of the splits of the keys become O and LSE.
//
// A row's partials are splits normalised vectors o_s and lse_s, in fp32. With top = max lse_s and w_s = exp(lse_s -
// top),
//   O = (sum w_s o_s) / (sum w_s),   LSE = top + log(sum w_s).
// The weights are divided by their own sum, not assumed to sum to 1: their common error cancels in O. All sums run in a
// fixed order (warp, split), so that the bits depend on nothing but the partials.
#pragma once

#include "impl/cuda/approx.cuh"
#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/store.cuh"

namespace attn {

// Row r = (batch * q_heads + head) * tq + i, 16-byte aligned; d_v is a multiple of 4. The o of a split whose lse is
// -inf is never read: it need not be written.
struct Partials {
  float* o;    // [rows][splits][d_v]
  float* lse;  // [rows][splits]
  Index splits;

  static std::size_t o_bytes(Index rows, Index splits, Index d_v) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(splits * d_v) * sizeof(float);
  }
  static std::size_t bytes(Index rows, Index splits, Index d_v) {
    return o_bytes(rows, splits, d_v) +
           static_cast<std::size_t>(rows) * static_cast<std::size_t>(splits) * sizeof(float);
  }
  Partials(void* workspace, Index rows, Index splits_, Index d_v)
      : o(static_cast<float*>(workspace)),
        lse(reinterpret_cast<float*>(static_cast<char*>(workspace) + o_bytes(rows, splits_, d_v))),
        splits(splits_) {}
};

// Programmatic dependent launch (sm_90 and newer): a kernel that was launched to overlap with the one before it in the
// stream starts when every block of that one has called let_next_kernel_start or ended, and waits for its writes here.
__device__ inline void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

inline constexpr int combine_warps = 4;
inline constexpr int combine_threads = 32 * combine_warps;
inline constexpr int combine_most_values = 256;  // d_v

namespace detail {

// The largest value of all threads of the block, in every thread; NaN if one is.
__device__ inline float block_max_or_nan(float x, float* per_warp) {
  for (int lane = 16; lane > 0; lane /= 2) x = max_or_nan(x, __shfl_xor_sync(0xffffffffu, x, lane));
  if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = per_warp[0];
  for (int w = 1; w < combine_warps; ++w) x = max_or_nan(x, per_warp[w]);
  return x;
}

}  // namespace detail

// One block per row. Warp w takes splits w, w + 4, ...; each lane four values of the row and four more 128 further on.
template <class T>
__global__ void __launch_bounds__(combine_threads)
    combine_kernel(const __grid_constant__ ForwardView view, const Partials partials) {
  __shared__ float weights[combine_threads];
  __shared__ float per_warp[combine_warps];
  __shared__ float4 sums[combine_warps][combine_most_values / 4];
  wait_for_previous_kernel();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const Index row = blockIdx.x, splits = partials.splits;
  const float* lse = partials.lse + row * splits;
  const float* o = partials.o + row * splits * view.d_v;

  float top = neg_infinity<float>;
  for (Index s = thread; s < splits; s += combine_threads) top = max_or_nan(top, lse[s]);
  top = detail::block_max_or_nan(top, per_warp);

  float4 sum[2] = {};
  float total = 0;
  for (Index first = 0; first < splits; first += combine_threads) {
    // -1 marks a split without keys.
    float weight = -1.0f;
    if (first + thread < splits) {
      const float x = lse[first + thread];
      if (!is_empty(x)) weight = weight_of(x, finite_max(top), 1.0f);
    }
    weights[thread] = weight;
    __syncthreads();
    const int here = static_cast<int>(smaller(splits - first, combine_threads));
    for (int s = 0; s < here; ++s)
      if (weights[s] != -1.0f) total += weights[s];
#pragma unroll 8
    for (int s = warp; s < here; s += combine_warps) {
      const float w = weights[s];
      if (w == -1.0f) continue;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int e = 4 * lane + 128 * part;
        if (e >= view.d_v) continue;
        const float4 x = *reinterpret_cast<const float4*>(o + (first + s) * view.d_v + e);
        sum[part].x = fused(w, x.x, sum[part].x);
        sum[part].y = fused(w, x.y, sum[part].y);
        sum[part].z = fused(w, x.z, sum[part].z);
        sum[part].w = fused(w, x.w, sum[part].w);
      }
    }
    __syncthreads();
  }

  sums[warp][lane] = sum[0];
  sums[warp][lane + 32] = sum[1];
  __syncthreads();
  const Index i = row % view.tq, h = row / view.tq % view.q_heads, b = row / view.tq / view.q_heads;
  const bool empty = is_empty(top);
  const float inverse = empty ? 0.0f : reciprocal(total);
  for (int e = thread; e < view.d_v; e += combine_threads) {
    float value = 0;
    for (int w = 0; w < combine_warps; ++w) value += reinterpret_cast<const float*>(sums[w])[e];
    store_value<T>(view, b, h, i, e, value * inverse);
  }
  if (thread == 0) store_lse(view, b, h, i, empty ? top : top + logf(total));
}

// overlap: let the combine start while the kernel before it drains (programmatic dependent launch, sm_90 and newer); it
// waits for that kernel's writes itself.
template <class T>
cudaError_t launch_combine(const ForwardView& view, const Partials& partials, bool overlap, cudaStream_t stream) {
  const Index rows = view.batch * view.q_heads * view.tq;
  if (rows == 0) return cudaSuccess;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(rows));
  config.blockDim = dim3(combine_threads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, combine_kernel<T>, view, partials);
}

}  // namespace attn
