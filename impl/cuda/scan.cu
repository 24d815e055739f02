// Online softmax of rows of scores: (m, l) extended by a block of them. Memory-bound: every score is read once, into
// registers, the row's maximum is found first and every weight is taken against it, so that a weight is one exp whose
// error does not depend on the magnitude of m.
//
// A row belongs to 8..256 threads, by its length. Rows of more than 8192 scores are cut into parts, a block each, whose
// (m, l) a second kernel merges in a fixed order. Who reads which score follows from the length of the row and
// tiling.splits alone: neither other rows nor strides or alignment change a bit.
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt_scan.h"
#include "impl/cuda/simt_warp.cuh"

namespace attn {

namespace {

constexpr Index part_keys = 8192;   // scores that a block of 256 threads holds in registers
constexpr Index most_parts = 1024;  // by default; longer rows have longer parts, which blocks walk through
constexpr Index grid_width = Index(1) << 30;

struct Partial {
  float m, l;
};

struct ScanView {
  const float *scores, *m_a, *l_a;
  float *m_out, *l_out;
  Partial* partials;
  Index row_stride, key_stride, m_a_stride, l_a_stride, m_out_stride, l_out_stride;
  Index rows, parts;
  SplitPlan plan;

  ScanView(const attn_problem& p, const SplitPlan& cut, void* workspace)
      : scores(static_cast<const float*>(p.scores.data)),
        m_a(static_cast<const float*>(p.a.m.data)),
        l_a(static_cast<const float*>(p.a.l.data)),
        m_out(static_cast<float*>(p.out.m.data)),
        l_out(static_cast<float*>(p.out.l.data)),
        partials(static_cast<Partial*>(workspace)),
        row_stride(p.scores.stride[0]),
        key_stride(p.scores.stride[1]),
        m_a_stride(p.a.m.stride[0]),
        l_a_stride(p.a.l.stride[0]),
        m_out_stride(p.out.m.stride[0]),
        l_out_stride(p.out.l.stride[0]),
        rows(p.scores.shape[0]),
        parts(larger(cut.used(), 1)),
        plan(cut) {}

  __device__ void store(Index row, float m, float l_scaled_a, float l) const {
    m_out[row * m_out_stride] = m;
    l_out[row * l_out_stride] = l_scaled_a + l;
  }
};

// Parts begin at multiples of 4 scores, so that 128-bit loads stay possible.
SplitPlan scan_plan(const attn_problem& p) {
  const Index keys = p.scores.shape[1];
  const Index wanted = smaller(ceil_div(keys, part_keys), most_parts);
  return plan_splits(keys, p.tiling.splits > 0 ? p.tiling.splits : larger(wanted, 1), 4);
}

// Vector v of thread t holds keys 4 (v Threads + t) .. + 3 of [begin, end); -inf beyond it, whose weight is exactly 0.
template <int Threads, int Vectors>
__device__ __forceinline__ void load_scores(float (&x)[Vectors][4], const float* row, Index stride, Index begin,
                                            Index end, int thread) {
  constexpr int most = Threads * Vectors * 4;
  const int count = static_cast<int>(smaller(end - begin, most));
  const float* const from = row + begin * stride;
  const auto first = [=](int v) { return 4 * (v * Threads + thread); };
  const auto load_four = [&](int v) {
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from + first(v)));
    x[v][0] = four.x, x[v][1] = four.y, x[v][2] = four.z, x[v][3] = four.w;
  };
  const bool by_fours = stride == 1 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
  if (by_fours && count == most) {
#pragma unroll
    for (int v = 0; v < Vectors; ++v) load_four(v);
    return;
  }
#pragma unroll
  for (int v = 0; v < Vectors; ++v)
#pragma unroll
    for (int j = 0; j < 4; ++j) x[v][j] = neg_infinity<float>;
  if (by_fours) {
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      if (first(v) + 4 <= count) load_four(v);
  }
  const int done = by_fours ? count / 4 * 4 : 0;
#pragma unroll
  for (int v = 0; v < Vectors; ++v)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first(v) >= done && first(v) + j < count) x[v][j] = from[(first(v) + j) * stride];
}

template <int Threads>
inline constexpr int block_threads = Threads > 32 ? Threads : 256;
constexpr int most_threads = 256;
// Of a multiprocessor. 768 threads with 128 bytes each under way are three times what the memory's latency asks for.
template <int Threads>
inline constexpr int resident_threads = Threads == most_threads ? 768 : 1024;

// One part of one row for every Threads threads.
template <int Threads, int Vectors>
__global__ void __launch_bounds__(block_threads<Threads>, resident_threads<Threads> / block_threads<Threads>)
    scan_parts(const ScanView s) {
  __shared__ float shared[2][8];
  constexpr int tasks_here = block_threads<Threads> / Threads;
  const int thread = threadIdx.x % Threads;
  const Index block = static_cast<Index>(blockIdx.y) * gridDim.x + blockIdx.x;
  const Index task = block * tasks_here + threadIdx.x / Threads;
  const bool whole = s.parts == 1, there = task < s.rows * s.parts;
  const Index row = !there ? 0 : whole ? task : task / s.parts;
  IndexRange keys{0, there ? s.plan.tk : 0};
  if (!whole && there) keys = s.plan.keys(task - row * s.parts);

  const float m_a = whole ? s.m_a[row * s.m_a_stride] : neg_infinity<float>;
  const float* scores = s.scores + row * s.row_stride;
  float m = m_a, l = 0.0f;
  // Only the largest blocks can find more than they hold.
  for (Index begin = keys.begin; begin < keys.end; begin += Threads * Vectors * 4) {
    float x[Vectors][4];
    load_scores<Threads, Vectors>(x, scores, s.key_stride, begin, keys.end, thread);
    float top = neg_infinity<float>;
#pragma unroll
    for (int v = 0; v < Vectors; ++v) top = max_nan(top, max_nan(max_nan(x[v][0], x[v][1]), max_nan(x[v][2], x[v][3])));
    const float risen = max_nan(m, reduce_threads<Threads>(top, MaxOf{}, shared[0]));
    if (begin > keys.begin) l *= rescale_factor(m, risen, 1.0f);
    m = risen;
    const float reference = finite_max(m);
    float sum[4] = {};
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += expf(x[v][j] - reference);
    l += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if (Threads < most_threads) break;
    if (begin + Threads * Vectors * 4 < keys.end) __syncthreads();  // before shared[0] is written again
  }
  l = reduce_threads<Threads>(l, SumOf{}, shared[1]);
  if (thread != 0 || !there) return;
  if (whole) {
    s.store(row, m, s.l_a[row * s.l_a_stride] * rescale_factor(m_a, m, 1.0f), l);
  } else {
    s.partials[task] = {m, l};
  }
}

// One warp a row: the parts' frames to the largest, weights of the shared algebra.
__global__ void __launch_bounds__(256) merge_parts(const ScanView s) {
  const Index row = (static_cast<Index>(blockIdx.y) * gridDim.x + blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= s.rows) return;
  const int lane = threadIdx.x % 32;
  const Partial* parts = s.partials + row * s.parts;
  const float m_a = s.m_a[row * s.m_a_stride];
  float m = m_a, l = 0.0f;
  for (Index i = lane; i < s.parts; i += 32) m = max_nan(m, parts[i].m);
  m = reduce_lanes<32>(m, MaxOf{});
  for (Index i = lane; i < s.parts; i += 32) l += parts[i].l * rescale_factor(parts[i].m, m, 1.0f);
  l = reduce_lanes<32>(l, SumOf{});
  if (lane == 0) s.store(row, m, s.l_a[row * s.l_a_stride] * rescale_factor(m_a, m, 1.0f), l);
}

dim3 grid_of(Index blocks) {
  const Index width = smaller(blocks, grid_width);
  return dim3(static_cast<unsigned>(width), static_cast<unsigned>(ceil_div(blocks, width)));
}

template <int Threads, int Vectors>
void launch_parts(const ScanView& s, cudaStream_t stream) {
  constexpr int tasks_here = block_threads<Threads> / Threads;
  const dim3 grid = grid_of(ceil_div(s.rows * s.parts, tasks_here));
  scan_parts<Threads, Vectors><<<grid, block_threads<Threads>, 0, stream>>>(s);
}

void launch_for_length(const ScanView& s, Index keys, cudaStream_t stream) {
  if (keys <= 32) return launch_parts<8, 1>(s, stream);
  if (keys <= 64) return launch_parts<8, 2>(s, stream);
  if (keys <= 128) return launch_parts<8, 4>(s, stream);
  if (keys <= 256) return launch_parts<8, 8>(s, stream);
  if (keys <= 512) return launch_parts<16, 8>(s, stream);
  if (keys <= 1024) return launch_parts<32, 8>(s, stream);
  if (keys <= 2048) return launch_parts<64, 8>(s, stream);
  if (keys <= 4096) return launch_parts<128, 8>(s, stream);
  launch_parts<256, 8>(s, stream);
}

struct Scan {
  static constexpr std::int32_t op = ATTN_OP_STEP;
  static constexpr const char* what = "scan of rows of scores";
  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, false, ATTN_STATE_ML}; }
  static void refuse(const attn_problem&, const DeviceFacts&, Refusal&) {}
  static std::size_t workspace(const attn_problem& p) { return scan_workspace(p); }
  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts&, cudaStream_t stream) {
    return launch_scan(p, workspace, stream);
  }
};

}  // namespace

std::size_t scan_workspace(const attn_problem& p) {
  const Index parts = scan_plan(p).used();
  return parts > 1 ? static_cast<std::size_t>(p.scores.shape[0] * parts) * sizeof(Partial) : 0;
}

cudaError_t launch_scan(const attn_problem& p, void* workspace, cudaStream_t stream) {
  const ScanView s(p, scan_plan(p), workspace);
  if (s.rows == 0) return cudaSuccess;
  launch_for_length(s, s.parts > 1 ? s.plan.keys_per_split : s.plan.tk, stream);
  if (s.parts > 1) merge_parts<<<grid_of(ceil_div(s.rows, 8)), 256, 0, stream>>>(s);
  return cudaGetLastError();
}

KernelEntry cuda_scan() { return CudaFunctions<Scan>::entry(); }

}  // namespace attn
