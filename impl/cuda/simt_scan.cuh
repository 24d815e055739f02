// The kernels of the scan of rows of scores to (m, l): see scan.cu.
#pragma once

#include "impl/attention.h"
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/overlap.cuh"
#include "impl/cuda/simt_scores.cuh"
#include "impl/cuda/simt_warp.cuh"

namespace attn {

inline constexpr int scan_vectors = 8;                          // of 4 scores, in the registers of a lane
inline constexpr Index scan_warp_keys = 32 * 4 * scan_vectors;  // scores that a warp holds
inline constexpr int scan_warps = 8;                            // of a block
inline constexpr int scan_threads = 32 * scan_warps;
inline constexpr int scan_resident_blocks = 4;  // of a multiprocessor: 128 bytes a thread are under way
inline constexpr Index scan_block_keys = scan_warps * scan_warp_keys;

struct ScanState {
  float m, l;
};

struct ScanView {
  const float *scores, *m_a, *l_a;
  float *m_out, *l_out;
  ScanState* partials;  // [rows][parts]
  Index row_stride, key_stride, m_a_stride, l_a_stride, m_out_stride, l_out_stride;
  Index rows, keys, parts;
  SplitPlan plan;

  ScanView(const attn_problem& p, const SplitPlan& cut, void* workspace)
      : scores(static_cast<const float*>(p.scores.data)),
        m_a(static_cast<const float*>(p.a.m.data)),
        l_a(static_cast<const float*>(p.a.l.data)),
        m_out(static_cast<float*>(p.out.m.data)),
        l_out(static_cast<float*>(p.out.l.data)),
        partials(static_cast<ScanState*>(workspace)),
        row_stride(p.scores.stride[0]),
        key_stride(p.scores.stride[1]),
        m_a_stride(p.a.m.stride[0]),
        l_a_stride(p.a.l.stride[0]),
        m_out_stride(p.out.m.stride[0]),
        l_out_stride(p.out.l.stride[0]),
        rows(p.scores.shape[0]),
        keys(p.scores.shape[1]),
        parts(cut.used()),
        plan(cut) {}

  __device__ const float* row(Index i) const { return scores + i * row_stride; }
  __device__ float old_m(Index i) const { return m_a[i * m_a_stride]; }
  // m is the row's new maximum, l the sum of the new weights under it.
  __device__ void store(Index i, float m, float l) const {
    m_out[i * m_out_stride] = m;
    l_out[i * l_out_stride] = l_a[i * l_a_stride] * rescale_factor(old_m(i), m, 1.0f) + l;
  }
};

// (m, l) of `count` scores at `from`, in every lane of the Lanes that share them; m not below `floor`. More scores than
// the lanes hold are taken one load after the other, which only whole warps do.
template <int Lanes, int Vectors>
__device__ __forceinline__ ScanState scan_keys(const float* from, Index stride, Index count, float floor, int lane) {
  constexpr int most = Lanes * Vectors * 4;
  float m = floor, l = 0.0f;
  for (Index begin = 0;;) {
    float x[Vectors][4];
    load_scores<Lanes, Vectors>(x, from + begin * stride, stride, static_cast<int>(smaller(count - begin, most)), lane);
    float top = neg_infinity<float>;
#pragma unroll
    for (int v = 0; v < Vectors; ++v) top = max_nan(top, max_nan(max_nan(x[v][0], x[v][1]), max_nan(x[v][2], x[v][3])));
    const float risen = max_nan(m, reduce_lanes<Lanes>(top, MaxOf{})), reference = finite_max(risen);
    if (begin > 0) l *= rescale_factor(m, risen, 1.0f);
    m = risen;
    float sum[4] = {};
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += expf(x[v][j] - reference);
    l += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    begin += most;
    if (Lanes < 32 || begin >= count) break;
  }
  return {m, reduce_lanes<Lanes>(l, SumOf{})};
}

__device__ __forceinline__ Index scan_block_index() { return static_cast<Index>(blockIdx.y) * gridDim.x + blockIdx.x; }

// Lanes lanes for a row.
template <int Lanes, int Vectors>
__global__ void __launch_bounds__(scan_threads, scan_resident_blocks) scan_short_rows(const ScanView s) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int lane = threadIdx.x % Lanes;
  const Index row = scan_block_index() * (scan_threads / Lanes) + threadIdx.x / Lanes;
  const bool there = row < s.rows;
  const Index at = there ? row : 0;
  const ScanState p = scan_keys<Lanes, Vectors>(s.row(at), s.key_stride, there ? s.keys : 0, s.old_m(at), lane);
  if (there && lane == 0) s.store(row, p.m, p.l);
}

// A block for a row, of which every warp has `share` scores.
template <int Vectors>
__global__ void __launch_bounds__(scan_threads, scan_resident_blocks) scan_rows(const ScanView s, const Index share) {
  __shared__ ScanState states[scan_warps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const Index row = scan_block_index();
  wait_for_previous_kernel();
  let_next_kernel_start();
  if (row >= s.rows) return;
  const IndexRange keys = block_range({0, s.keys}, share, warp);
  const ScanState mine = scan_keys<32, Vectors>(s.row(row) + keys.begin * s.key_stride, s.key_stride, keys.size(),
                                                neg_infinity<float>, lane);
  if (lane == 0) states[warp] = mine;
  __syncthreads();
  if (warp > 0) return;
  const ScanState other = lane < warps ? states[lane] : ScanState{neg_infinity<float>, 0.0f};
  const float m = max_nan(s.old_m(row), reduce_lanes<32>(other.m, MaxOf{}));
  const float l = reduce_lanes<32>(other.l * rescale_factor(other.m, m, 1.0f), SumOf{});
  if (lane == 0) s.store(row, m, l);
}

// A warp for a part of a row.
template <int Vectors>
__global__ void __launch_bounds__(scan_threads, scan_resident_blocks) scan_parts(const ScanView s) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int lane = threadIdx.x % 32;
  const Index part = static_cast<Index>(blockIdx.x) * scan_warps + threadIdx.x / 32;
  if (part >= s.parts) return;
  const IndexRange keys = block_range({0, s.keys}, s.plan.keys_per_split, part);
  for (Index row = blockIdx.y; row < s.rows; row += gridDim.y) {
    const ScanState p = scan_keys<32, Vectors>(s.row(row) + keys.begin * s.key_stride, s.key_stride, keys.size(),
                                               neg_infinity<float>, lane);
    if (lane == 0) s.partials[row * s.parts + part] = p;
  }
}

// A block for the parts of a row.
static __global__ void __launch_bounds__(scan_threads) merge_parts(const ScanView s) {
  __shared__ float shared[2][scan_warps];
  wait_for_previous_kernel();
  let_next_kernel_start();
  const Index row = scan_block_index();
  if (row >= s.rows) return;
  const ScanState* parts = s.partials + row * s.parts;
  float m = s.old_m(row), l = 0.0f;
  for (Index i = threadIdx.x; i < s.parts; i += scan_threads) m = max_nan(m, parts[i].m);
  m = reduce_threads<scan_threads>(m, MaxOf{}, shared[0]);
  for (Index i = threadIdx.x; i < s.parts; i += scan_threads) l += parts[i].l * rescale_factor(parts[i].m, m, 1.0f);
  l = reduce_threads<scan_threads>(l, SumOf{}, shared[1]);
  if (threadIdx.x == 0) s.store(row, m, l);
}

}  // namespace attn
