// Online softmax of rows of scores: (m, l) extended by a block of them. Memory-bound: every score is read once, into
// the registers of a warp, whose lanes find the maximum first and then take every weight against it. A weight is expf
// of a difference: its error does not grow with |m|.
//
// By its length a row belongs to 4 to 32 lanes (up to 1024 scores), to the warps of a block, whose (m, l) are merged
// (up to 8192), or to parts of up to 1024 scores all over the device, whose (m, l) a second kernel merges. Merges run
// in a fixed order, with the weights of the shared algebra: one more exp and product for weights of a row of more than
// 1024. Who reads which score follows from the length of the row and tiling.splits alone: neither other rows nor
// strides or alignment change a bit.
#include "impl/cuda/simt_scan.cuh"

#include "impl/cuda/kernel.h"
#include "impl/cuda/simt_scan.h"
#include "impl/cuda/tiling.h"

namespace attn {

namespace {

constexpr Index grid_width = Index(1) << 30, most_grid_rows = 65535;

// The parts that a row is cut into: as many as asked for, else one up to scan_block_keys and enough for the whole
// device beyond. Parts begin at multiples of 4 scores.
SplitPlan scan_plan(const attn_problem& p) {
  const Index keys = p.scores.shape[1];
  const Index own = keys <= scan_block_keys ? 1 : smaller(ceil_div(keys, scan_warp_keys), cuda_most_scan_parts);
  return plan_splits(keys, p.tiling.splits > 0 ? p.tiling.splits : own, 4);
}

dim3 grid_of(Index blocks) {
  const Index width = smaller(blocks, grid_width);
  return dim3(static_cast<unsigned>(width), static_cast<unsigned>(ceil_div(blocks, width)));
}

// Every kernel may start while the one before it in the stream drains, and waits for it there: a scan of 64 MiB is 5 %
// faster for it.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, dim3 blocks, unsigned threads, const DeviceFacts& facts, cudaStream_t stream,
            const Arguments&... arguments) {
  launch_overlapping(kernel, blocks, threads, 0, stream, facts.overlaps, arguments...);
}

template <int Lanes, int Vectors>
void launch_short_rows(const ScanView& s, const DeviceFacts& facts, cudaStream_t stream) {
  launch(scan_short_rows<Lanes, Vectors>, grid_of(ceil_div(s.rows, scan_threads / Lanes)), scan_threads, facts, stream,
         s);
}

template <int Vectors>
void launch_warps(const ScanView& s, Index warps, const DeviceFacts& facts, cudaStream_t stream) {
  if (s.parts > 1) {
    const dim3 grid(static_cast<unsigned>(ceil_div(s.parts, scan_warps)),
                    static_cast<unsigned>(smaller(s.rows, most_grid_rows)));
    launch(scan_parts<Vectors>, grid, scan_threads, facts, stream, s);
    launch(merge_parts, grid_of(s.rows), scan_threads, facts, stream, s);
  } else if (warps > 1) {
    // More than the registers hold only where a single part was asked for.
    const Index share = larger(32 * Vectors * 4, plan_splits(s.keys, warps, 4).keys_per_split);
    launch(scan_rows<Vectors>, grid_of(s.rows), static_cast<unsigned>(32 * warps), facts, stream, s, share);
  } else {
    launch_short_rows<32, Vectors>(s, facts, stream);
  }
}

// As many vectors as it takes, so that no lane waits for memory that its neighbours alone read.
void launch_for_length(const ScanView& s, const DeviceFacts& facts, cudaStream_t stream) {
  const Index keys = s.parts > 1 ? smaller(s.plan.keys_per_split, scan_warp_keys) : s.keys;
  // Few lanes with many vectors: what a row costs beside its scores is shared by more rows to a warp.
  if (s.parts <= 1 && keys <= 16) return launch_short_rows<4, 1>(s, facts, stream);
  if (s.parts <= 1 && keys <= 32) return launch_short_rows<4, 2>(s, facts, stream);
  if (s.parts <= 1 && keys <= 64) return launch_short_rows<4, 4>(s, facts, stream);
  if (s.parts <= 1 && keys <= 128) return launch_short_rows<4, 8>(s, facts, stream);
  if (s.parts <= 1 && keys <= 192) return launch_short_rows<8, 6>(s, facts, stream);
  if (s.parts <= 1 && keys <= 256) return launch_short_rows<8, 8>(s, facts, stream);
  if (s.parts <= 1 && keys <= 384) return launch_short_rows<16, 6>(s, facts, stream);
  if (s.parts <= 1 && keys <= 512) return launch_short_rows<16, 8>(s, facts, stream);
  const Index warps = smaller(ceil_div(keys, scan_warp_keys), scan_warps);
  switch (ceil_div(keys, 32 * 4 * warps)) {
    case 1:
    case 2:
    case 3:
    case 4:
      return launch_warps<4>(s, warps, facts, stream);
    case 5:
      return launch_warps<5>(s, warps, facts, stream);
    case 6:
      return launch_warps<6>(s, warps, facts, stream);
    case 7:
      return launch_warps<7>(s, warps, facts, stream);
    default:
      return launch_warps<scan_vectors>(s, warps, facts, stream);
  }
}

struct Scan {
  static constexpr std::int32_t op = ATTN_OP_STEP;
  static constexpr const char* what = "scan of rows of scores";
  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, false, ATTN_STATE_ML}; }
  static std::size_t workspace(const attn_problem& p) { return scan_workspace(p); }
  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    return launch_scan(p, workspace, facts, stream);
  }
};

}  // namespace

std::size_t scan_workspace(const attn_problem& p) {
  const Index parts = scan_plan(p).used();
  return parts > 1 ? static_cast<std::size_t>(p.scores.shape[0] * parts) * sizeof(ScanState) : 0;
}

cudaError_t launch_scan(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
  const ScanView s(p, scan_plan(p), workspace);
  if (s.rows == 0) return cudaSuccess;
  launch_for_length(s, facts, stream);
  return cudaGetLastError();
}

KernelEntry cuda_scan() { return CudaFunctions<Scan>::entry(); }

}  // namespace attn
