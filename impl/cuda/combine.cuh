// The second half of Flash-Decoding: partial results of the splits of the keys become O and LSE.
//
// A row's partials are splits normalised vectors o_s and lse_s, in fp32. With top = max lse_s and w_s = exp(lse_s -
// top),
//   O = (sum w_s o_s) / (sum w_s),   LSE = top + log(sum w_s).
// The weights are divided by their own sum, not assumed to sum to 1: their common error cancels in O. All sums run in a
// fixed order, so that the bits depend on nothing but the partials.
#pragma once

#include "impl/cuda/approx.cuh"
#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/mma.cuh"
#include "impl/cuda/overlap.cuh"
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

inline constexpr int combine_warps = 4;
inline constexpr int combine_most_values = 256;  // d_v

// One block per row. Every warp has all weights, 32 splits at a time, one to a lane; warp w takes the vectors of splits
// w, w + 4, ..., each lane four values of the row and four more 128 further on.
template <class T>
__global__ void __launch_bounds__(32 * combine_warps)
    combine_kernel(const __grid_constant__ ForwardView view, const Partials partials) {
  __shared__ float4 sums[combine_warps][combine_most_values / 4];
  constexpr unsigned everyone = 0xffffffffu;
  constexpr int at_once = 32 / combine_warps;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const unsigned row = blockIdx.x, tq = static_cast<unsigned>(view.tq), heads = static_cast<unsigned>(view.q_heads);
  const Index i = row % tq, h = row / tq % heads, b = row / tq / heads;
  const Index splits = partials.splits;
  const float* const lse = partials.lse + row * splits;
  const float* const o = partials.o + row * splits * view.d_v + 4 * lane;
  wait_for_previous_kernel();
  let_next_kernel_start();

  float top = neg_infinity<float>;
  for (Index s = lane; s < splits; s += 32) top = max_nan(top, lse[s]);
  for (int other = 16; other > 0; other /= 2) top = max_nan(top, __shfl_xor_sync(everyone, top, other));

  float4 sum[2] = {};
  float total = 0;
  for (Index first = 0; first < splits; first += 32) {
    const float x = first + lane < splits ? lse[first + lane] : neg_infinity<float>;
    const unsigned holds_keys = __ballot_sync(everyone, !is_empty(x));
    float4 value[at_once][2];
#pragma unroll
    for (int u = 0; u < at_once; ++u)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int s = warp + combine_warps * u;
        value[u][part] = make_float4(0, 0, 0, 0);
        if (holds_keys >> s & 1 && 4 * lane + 128 * part < view.d_v)
          value[u][part] = *reinterpret_cast<const float4*>(o + (first + s) * view.d_v + 128 * part);
      }
    const float weight = is_empty(x) ? 0.0f : weight_of(x, finite_max(top), 1.0f);
    float together = weight;
    for (int other = 16; other > 0; other /= 2) together += __shfl_xor_sync(everyone, together, other);
    total += together;
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const float w = __shfl_sync(everyone, weight, warp + combine_warps * u);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        sum[part].x = fused(w, value[u][part].x, sum[part].x);
        sum[part].y = fused(w, value[u][part].y, sum[part].y);
        sum[part].z = fused(w, value[u][part].z, sum[part].z);
        sum[part].w = fused(w, value[u][part].w, sum[part].w);
      }
    }
  }

  sums[warp][lane] = sum[0];
  sums[warp][lane + 32] = sum[1];
  __syncthreads();
  const bool empty = is_empty(top);
  const float inverse = empty ? 0.0f : reciprocal(total);
  for (int e = thread; e < view.d_v; e += 32 * combine_warps) {
    float value = 0;
    for (int w = 0; w < combine_warps; ++w) value += reinterpret_cast<const float*>(sums[w])[e];
    store_value<T>(view, b, h, i, e, value * inverse);
  }
  if (thread == 0) store_lse(view, b, h, i, empty ? top : top + logf(total));
}

// overlap: the combine may start while the kernel before it drains (DeviceFacts::overlaps).
template <class T>
cudaError_t launch_combine(const ForwardView& view, const Partials& partials, bool overlap, cudaStream_t stream) {
  const Index rows = view.batch * view.q_heads * view.tq;
  if (rows == 0) return cudaSuccess;
  return launch_overlapping(combine_kernel<T>, dim3(static_cast<unsigned>(rows)), 32 * combine_warps, 0, stream,
                            overlap, view, partials);
}

}  // namespace attn
