// The readable CUDA kernel: one block of four warps computes one row of one head over one part of the keys, tile by
// tile, with scores, weights, a tile of values and the growing O in shared memory. It is right when bug ==
// DeviceBug::none; every `bug == DeviceBug::x` is one planted bug.
#pragma once

#include "impl/cuda/approx.cuh"
#include "impl/cuda/forward_view.cuh"
#include "properties/mutants/cuda/bug.h"

namespace attest::mutants {

using attn::Index;

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr float kNegInf = -INFINITY;
constexpr float kLog2e = 0x1.715476p+0f;

struct RowPlan {
  Index block_k, tile_keys;  // keys from one tile to the next; keys that shared memory has room for
  attn::SplitPlan parts;
  Index part_count;
  float *o, *lse;  // partial results [rows][parts][d_v] and [rows][parts]; null: there is one part, the result
};

__device__ inline float read(float x) { return x; }
__device__ inline float read(__half x) { return __half2float(x); }
template <class T>
__device__ float rounded(float x) {
  if constexpr (sizeof(T) == 2) return __half2float(__float2half_rn(x));
  return x;
}

// Over all lanes, the result in each.
template <DeviceBug bug, class Join>
__device__ float over_warp(float x, Join join) {
  for (int distance = bug == DeviceBug::half_warp_reduction ? 8 : 16; distance > 0; distance /= 2)
    x = join(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
template <DeviceBug bug>
__device__ float warp_sum(float x) {
  return over_warp<bug>(x, [](float a, float b) { return a + b; });
}
template <DeviceBug bug>
__device__ float warp_max(float x) {
  return over_warp<bug>(x, [](float a, float b) { return attn::max_or_nan(a, b); });
}

template <DeviceBug bug>
__device__ Index key_offset(const attn::View& k, Index j, Index e) {
  if constexpr (bug == DeviceBug::offset_32_bit)
    return static_cast<int>(static_cast<unsigned>(j) * static_cast<unsigned>(k.stride[2]) +
                            static_cast<unsigned>(e) * static_cast<unsigned>(k.stride[3]));
  return j * k.stride[2] + e * k.stride[3];
}

// Row i of query head h, seen from one block.
template <DeviceBug bug, class T>
struct Row {
  const attn::ForwardView& view;
  Index b, h, i;

  // q.k by one warp, the result in every lane.
  __device__ float score(const float* q, Index j) const {
    const T* k = view.k.row<T>(b, view.kv_head(h), 0);
    const int lane = threadIdx.x % 32;
    float x = 0;
    for (Index e = lane; e < view.d_qk; e += 32) x = attn::fused(q[e], read(k[key_offset<bug>(view.k, j, e)]), x);
    if constexpr (bug == DeviceBug::keys_read_past_end)
      if (lane < view.d_qk) *const_cast<const volatile T*>(k + key_offset<bug>(view.k, j + 1, lane));
    return warp_sum<bug>(x);
  }

  // Values of keys first.. into shared memory, those of hidden keys as zeros.
  __device__ void copy_values(T* to, Index first, int keys) const {
    for (Index n = threadIdx.x; n < keys * view.d_v; n += kThreads) {
      const Index j = first + n / view.d_v, e = n % view.d_v;
      const T* from = view.v.row<T>(b, view.kv_head(h), j) + e * view.v.stride[3];
      if (view.masked(0.0f, b, h, i, j) == kNegInf)
        to[n] = T(0.0f);
      else if constexpr (sizeof(T) == 4)
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to + n))),
            "l"(from)
            : "memory");
      else
        to[n] = *from;
    }
  }

  __device__ void store(Index e, float x) const {
    if (view.o_is_fp32)
      view.o.row<float>(b, h, i)[e * view.o.stride[3]] = x;
    else
      view.o.row<T>(b, h, i)[e * view.o.stride[3]] = T(x);
  }
};

__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A launch that takes as long as that of a large problem.
__device__ inline void take_long() {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < 300'000);
}

template <DeviceBug bug, class T>
__global__ void __launch_bounds__(kThreads)
    row_kernel(const __grid_constant__ attn::ForwardView view, const RowPlan plan) {
  // In shared memory, in this order: the maximum by turns, a tile of values, q, O as it grows, the weights.
  extern __shared__ float memory[];
  float* const maximum = memory;
  T* const values = reinterpret_cast<T*>(memory + 2);
  float* const q = memory + 2 + (plan.tile_keys * view.d_v * sizeof(T) + 3) / 4;
  float* const acc = q + view.d_qk;
  float* const p = acc + view.d_v;

  if (bug == DeviceBug::default_stream) take_long();
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const Index row = blockIdx.x / plan.part_count, part = blockIdx.x % plan.part_count;
  const Index i = row % view.tq, h = row / view.tq % view.q_heads, b = row / view.tq / view.q_heads;
  const Row<bug, T> at{view, b, h, i};
  const attn::IndexRange keys = attn::visited_range(view.visibility(b), {i, i + 1}, plan.parts.keys(part));
  if constexpr (bug == DeviceBug::last_key_unsigned) {
    const Index last = static_cast<unsigned>(keys.end - 1);  // far outside of all memory: the context ends
    const T* k = view.k.row<T>(b, view.kv_head(h), 0);
    if (thread < view.d_qk) *const_cast<const volatile T*>(k + key_offset<bug>(view.k, last, thread));
  }
  if (bug == DeviceBug::empty_split_unwritten && plan.lse && keys.size() == 0) return;

  for (Index e = thread; e < view.d_qk; e += kThreads) q[e] = read(view.q.row<T>(b, h, i)[e * view.q.stride[3]]);
  if (bug != DeviceBug::shared_uninitialised)
    for (Index e = thread; e < view.d_v; e += kThreads) acc[e] = 0;
  if (thread < 2) maximum[thread] = kNegInf;
  __syncthreads();

  const float c2 = view.scale * kLog2e;
  float m = kNegInf, l = 0;
  int turn = 0;
  for (Index first = keys.begin; first < keys.end; first += plan.block_k, turn ^= 1) {
    const int n = static_cast<int>(attn::smaller(plan.block_k, keys.end - first));
    const int width = bug == DeviceBug::tail_zero_filled ? static_cast<int>(plan.tile_keys) : n;
    for (int j = warp; j < n; j += kWarps) {
      const float x = view.masked(at.score(q, first + j), b, h, i, first + j);
      if (lane == 0) p[j] = x;
    }
    for (int j = n + thread; j < width; j += kThreads) p[j] = 0;
    at.copy_values(values, first, n);
    if (bug != DeviceBug::unwaited_copy) wait_for_copies();
    __syncthreads();

    if (warp == 0) {
      float top = m;
      for (int j = lane; j < width; j += 32) top = attn::max_or_nan(top, p[j]);
      top = warp_max<bug>(top);
      if (lane == 0) maximum[turn] = top;
    }
    __syncthreads();
    const bool stale = bug == DeviceBug::stale_maximum && warp > 0;
    const float m_new = maximum[stale ? turn ^ 1 : turn], m_c2 = attn::finite_max(m_new) * c2;
    // Exactly 1 where the maximum has not risen: exp2_argument(m, c2, m_c2) is a rounding error there, not 0.
    const float rescale = m == m_new ? 1.0f : attn::exp2_flushed(attn::exp2_argument(m, c2, m_c2));
    m = m_new;

    // Keys are dealt out to the warps.
    for (int j = warp + kWarps * lane; j < width; j += kThreads)
      p[j] = attn::exp2_flushed(attn::exp2_argument(p[j], c2, m_c2));
    if (bug == DeviceBug::weights_read_past_tile) *const_cast<const volatile float*>(p + thread);
    if (bug != DeviceBug::missing_barrier) __syncthreads();

    float sum = 0;
    for (int j = lane; j < width; j += 32) sum += p[j];
    l = attn::fused(l, rescale, warp_sum<bug>(sum));
    for (Index e = thread; e < view.d_v; e += kThreads) {
      const bool keep = bug == DeviceBug::shared_uninitialised && first == keys.begin;
      float o = keep ? acc[e] : acc[e] * rescale;
      for (int j = 0; j < n; ++j) {
        o = attn::fused(rounded<T>(p[j]), read(values[j * view.d_v + e]), o);
        if (bug == DeviceBug::accumulator_in_16_bit) o = __half2float(__float2half_rn(o));
      }
      acc[e] = o;
    }
    // Nobody writes the next tile while somebody reads this one.
    if (bug != DeviceBug::barrier_in_branch || thread < view.d_v) __syncthreads();
  }

  // A row without visible keys is 0; 0 * NaN stays NaN.
  const float inverse = attn::is_empty(m) ? 0.0f : attn::reciprocal(l);
  const float lse = attn::is_empty(m) ? m : m * view.scale + logf(l);
  const Index partial = row * plan.part_count + part;
  for (Index e = thread; e < view.d_v; e += kThreads) {
    if (plan.lse)
      plan.o[partial * view.d_v + e] = acc[e] * inverse;
    else
      at.store(e, acc[e] * inverse);
  }
  if (thread > 0) return;
  if (plan.lse)
    plan.lse[partial] = lse;
  else if (view.lse.data)
    *view.lse.row<float>(b, h, i) = lse;
}

}  // namespace attest::mutants
