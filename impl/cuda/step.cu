// One step of the online softmax: (m, l, acc) extended by a block of scores and their values. The scan gives the new
// (m, l); then acc is brought to the new maximum and takes P.V, a tile of 64 rows by 64 columns for each block, keys in
// increasing order, every product fused. P is rounded to the format of the values, the sum l is not.
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt_format.cuh"
#include "impl/cuda/simt_scan.h"

namespace attn {

namespace {

constexpr int tile_rows = 64, tile_columns = 64, tile_keys = 32, threads = 256;
constexpr int rows_each = 4;           // of a thread: ty + 16 i
constexpr int stride = tile_keys + 4;  // 128-bit reads of neighbouring rows fall into different banks
constexpr Index grid_width = Index(1) << 20;

struct StepView {
  const float *scores, *m_a, *acc_a, *m_out;
  const void* v;
  float* acc_out;
  Index score_row, score_key, v_key, v_column, m_a_stride, m_out_stride, a_row, a_column, out_row, out_column;
  Index rows, keys, d_v, row_tiles;

  explicit StepView(const attn_problem& p)
      : scores(static_cast<const float*>(p.scores.data)),
        m_a(static_cast<const float*>(p.a.m.data)),
        acc_a(static_cast<const float*>(p.a.acc.data)),
        m_out(static_cast<const float*>(p.out.m.data)),
        v(p.v.data),
        acc_out(static_cast<float*>(p.out.acc.data)),
        score_row(p.scores.stride[0]),
        score_key(p.scores.stride[1]),
        v_key(p.v.stride[0]),
        v_column(p.v.stride[1]),
        m_a_stride(p.a.m.stride[0]),
        m_out_stride(p.out.m.stride[0]),
        a_row(p.a.acc.stride[0]),
        a_column(p.a.acc.stride[1]),
        out_row(p.out.acc.stride[0]),
        out_column(p.out.acc.stride[1]),
        rows(p.scores.shape[0]),
        keys(p.scores.shape[1]),
        d_v(p.v.shape[1]),
        row_tiles(ceil_div(rows, tile_rows)) {}
};

// What a thread fetches of the next tile while the block computes on the present one.
template <class T>
struct Fetched {
  static constexpr int count = tile_rows * tile_keys / threads;
  float score[count];
  T value[count];

  // Scores: row threadIdx / 32 + 8 i, key threadIdx % 32. Values: key threadIdx / 64 + 4 i, column threadIdx % 64.
  __device__ void load(const StepView& s, Index first_row, Index first_column, Index first_key) {
    const int t = threadIdx.x;
    const Index key = first_key + t % tile_keys, column = first_column + t % tile_columns;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Index row = first_row + t / tile_keys + 8 * i;
      score[i] = row < s.rows && key < s.keys ? s.scores[row * s.score_row + key * s.score_key] : neg_infinity<float>;
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Index at = first_key + t / tile_columns + 4 * i;
      value[i] = column < s.d_v && at < s.keys ? static_cast<const T*>(s.v)[at * s.v_key + column * s.v_column]
                                               : Storage<T>::narrow(0.0f);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(threads, 2) add_values(const StepView s) {
  __shared__ __align__(16) float p[tile_rows][stride];
  __shared__ __align__(16) float v[tile_keys][tile_columns];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const Index tile = static_cast<Index>(blockIdx.y) * gridDim.x + blockIdx.x;
  if (tile >= s.row_tiles * ceil_div(s.d_v, tile_columns)) return;
  const Index first_row = tile % s.row_tiles * tile_rows, first_column = tile / s.row_tiles * tile_columns;

  float acc[rows_each][4], m[Fetched<T>::count];
#pragma unroll
  for (int i = 0; i < rows_each; ++i) {
    const Index row = first_row + ty + 16 * i;
    const float factor =
        row < s.rows ? rescale_factor(s.m_a[row * s.m_a_stride], s.m_out[row * s.m_out_stride], 1.0f) : 0.0f;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Index column = first_column + 4 * tx + e;
      const bool there = row < s.rows && column < s.d_v;
      acc[i][e] = there ? s.acc_a[row * s.a_row + column * s.a_column] * factor : 0.0f;
    }
  }
#pragma unroll
  for (int i = 0; i < Fetched<T>::count; ++i) {
    const Index row = first_row + t / tile_keys + 8 * i;
    m[i] = row < s.rows ? finite_max(s.m_out[row * s.m_out_stride]) : 0.0f;
  }

  Fetched<T> next;
  next.load(s, first_row, first_column, 0);
  for (Index key = 0; key < s.keys; key += tile_keys) {
    bool blocked = false;
#pragma unroll
    for (int i = 0; i < Fetched<T>::count; ++i) {
      const bool hidden = next.score[i] == neg_infinity<float>;
      blocked |= hidden;
      p[t / tile_keys + 8 * i][t % tile_keys] = hidden ? hidden_weight : Storage<T>::round(expf(next.score[i] - m[i]));
      v[t / tile_columns + 4 * i][t % tile_columns] = Storage<T>::widen(next.value[i]);
    }
    const bool some_blocked = __syncthreads_or(blocked);
    if (key + tile_keys < s.keys) next.load(s, first_row, first_column, key + tile_keys);
#pragma unroll
    for (int j = 0; j < tile_keys; j += 4) {
      float4 weight[rows_each], value[4];
#pragma unroll
      for (int i = 0; i < rows_each; ++i) weight[i] = *reinterpret_cast<const float4*>(&p[ty + 16 * i][j]);
#pragma unroll
      for (int k = 0; k < 4; ++k) value[k] = *reinterpret_cast<const float4*>(&v[j + k][4 * tx]);
      if (some_blocked) {
        add_products<true>(acc, weight, value);
      } else {
        add_products<false>(acc, weight, value);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < rows_each; ++i) {
    const Index row = first_row + ty + 16 * i;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Index column = first_column + 4 * tx + e;
      if (row < s.rows && column < s.d_v) s.acc_out[row * s.out_row + column * s.out_column] = acc[i][e];
    }
  }
}

template <class T>
struct Step {
  static constexpr std::int32_t op = ATTN_OP_STEP;
  static constexpr const char* what = "step of the online softmax";
  static Requirements needs() { return {Storage<T>::dtype, ATTN_FP32, false, ATTN_STATE_MLA}; }
  static std::size_t workspace(const attn_problem& p) { return scan_workspace(p); }

  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    const cudaError_t error = launch_scan(p, workspace, facts, stream);
    const StepView s(p);
    const Index blocks = s.row_tiles * ceil_div(s.d_v, tile_columns);
    if (error != cudaSuccess || blocks == 0) return error;
    const Index width = smaller(blocks, grid_width);
    const dim3 grid(static_cast<unsigned>(width), static_cast<unsigned>(ceil_div(blocks, width)));
    add_values<T><<<grid, threads, 0, stream>>>(s);
    return cudaGetLastError();
  }
};

}  // namespace

KernelEntry cuda_step(CudaFormat format) {
  if (format == CudaFormat::fp16) return CudaFunctions<Step<Half>>::entry();
  if (format == CudaFormat::bf16) return CudaFunctions<Step<Bfloat16>>::entry();
  return CudaFunctions<Step<float>>::entry();
}

}  // namespace attn
