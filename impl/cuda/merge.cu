// Merges of two states, row by row. Symmetric in them bit for bit: products and sums are rounded apart (no FMA),
// weights come from the shared algebra. An empty side weighs exactly 0 and the other exactly 1, so that it is the
// identity without a branch, and a NaN in either side is never passed over.
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/kernel.h"

namespace attn {

namespace {

constexpr int threads = 256;
constexpr Index most_blocks = Index(1) << 20;

// One of the three states of a problem. Pointers to const are cast for the inputs, which nobody writes.
struct StateView {
  float *m, *l, *acc;
  Index m_stride, l_stride, row_stride, stride;

  explicit StateView(const attn_state& s)
      : m(static_cast<float*>(s.m.data)),
        l(static_cast<float*>(s.l.data)),
        acc(static_cast<float*>(s.acc.data)),
        m_stride(s.m.stride[0]),
        l_stride(s.l.stride[0]),
        row_stride(s.acc.stride[0]),
        stride(s.acc.stride[1]) {}

  // Whether columns 0, 4, 8, ... of every row can be reached by 128-bit accesses.
  bool by_fours() const {
    return stride == 1 && row_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(acc) % 16 == 0;
  }
};

struct MergeView {
  StateView a, b, out;
  Index rows, d_v;

  explicit MergeView(const attn_problem& p)
      : a(p.a),
        b(p.b),
        out(p.out),
        rows(p.out.m.shape[0]),
        d_v(p.state_kind == ATTN_STATE_ML ? 0 : p.out.acc.shape[1]) {}
};

struct RowWeights {
  MergeWeights<float> w;
  float divisor;  // of O and LSE; 1 where there is nothing to divide by

  __device__ RowWeights(float m_a, float m_b) : w(merge_weights(m_a, m_b)), divisor(is_empty(w.m) ? 1.0f : w.a + w.b) {}

  template <std::int32_t Kind>
  __device__ float value(float a, float b) const {
    const float sum = __fadd_rn(__fmul_rn(a, w.a), __fmul_rn(b, w.b));
    return Kind == ATTN_STATE_OLSE ? __fdiv_rn(sum, divisor) : sum;
  }
};

// blockDim.x threads share a row, four columns each at a time; blockDim.y rows in a block.
template <std::int32_t Kind, bool Fours>
__global__ void __launch_bounds__(threads) merge_rows(const MergeView s) {
  for (Index row = static_cast<Index>(blockIdx.x) * blockDim.y + threadIdx.y; row < s.rows;
       row += static_cast<Index>(gridDim.x) * blockDim.y) {
    const RowWeights weights(s.a.m[row * s.a.m_stride], s.b.m[row * s.b.m_stride]);
    if (threadIdx.x == 0) {
      if constexpr (Kind == ATTN_STATE_OLSE) {
        const bool empty = is_empty(weights.w.m);
        s.out.m[row * s.out.m_stride] = empty ? weights.w.m : weights.w.m + logf(weights.divisor);
      } else {
        s.out.m[row * s.out.m_stride] = weights.w.m;
        s.out.l[row * s.out.l_stride] = weights.value<Kind>(s.a.l[row * s.a.l_stride], s.b.l[row * s.b.l_stride]);
      }
    }
    const float* a = s.a.acc + row * s.a.row_stride;
    const float* b = s.b.acc + row * s.b.row_stride;
    float* out = s.out.acc + row * s.out.row_stride;
    Index e = 4 * static_cast<Index>(threadIdx.x);
    if constexpr (Fours) {
      for (; e + 4 <= s.d_v; e += 4 * blockDim.x) {
        const float4 x = *reinterpret_cast<const float4*>(a + e), y = *reinterpret_cast<const float4*>(b + e);
        *reinterpret_cast<float4*>(out + e) = {weights.value<Kind>(x.x, y.x), weights.value<Kind>(x.y, y.y),
                                               weights.value<Kind>(x.z, y.z), weights.value<Kind>(x.w, y.w)};
      }
      for (; e < s.d_v; ++e) out[e] = weights.value<Kind>(a[e], b[e]);
    } else {
      for (e = threadIdx.x; e < s.d_v; e += blockDim.x)
        out[e * s.out.stride] = weights.value<Kind>(a[e * s.a.stride], b[e * s.b.stride]);
    }
  }
}

template <std::int32_t Kind>
struct Merge {
  static constexpr std::int32_t op = ATTN_OP_MERGE;
  static constexpr const char* what = "merge of two states";
  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, false, Kind}; }
  static std::size_t workspace(const attn_problem&) { return 0; }

  static cudaError_t launch(const attn_problem& p, void*, const DeviceFacts&, cudaStream_t stream) {
    const MergeView s(p);
    if (s.rows == 0) return cudaSuccess;
    unsigned across = 1;
    while (across < 32 && 4 * static_cast<Index>(across) < s.d_v) across *= 2;
    const dim3 block(across, threads / across);
    const auto grid = static_cast<unsigned>(smaller(ceil_div(s.rows, block.y), most_blocks));
    if (s.a.by_fours() && s.b.by_fours() && s.out.by_fours()) {
      merge_rows<Kind, true><<<grid, block, 0, stream>>>(s);
    } else {
      merge_rows<Kind, false><<<grid, block, 0, stream>>>(s);
    }
    return cudaGetLastError();
  }
};

}  // namespace

KernelEntry cuda_merge(std::int32_t state_kind) {
  if (state_kind == ATTN_STATE_ML) return CudaFunctions<Merge<ATTN_STATE_ML>>::entry();
  if (state_kind == ATTN_STATE_MLA) return CudaFunctions<Merge<ATTN_STATE_MLA>>::entry();
  return CudaFunctions<Merge<ATTN_STATE_OLSE>>::entry();
}

}  // namespace attn
