// Tiles in shared memory: rows of D 16-bit elements, in chunks of 8 (16 bytes). Chunk c of row r stands at place
// c ^ (r % 8) of its row, so that the 8 rows that one matrix load reads lie in different banks.
#pragma once

#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/mma.cuh"

namespace attn {

// Who shares a tile: the threads that fill it together and meet before it is read.
struct BlockTeam {
  static constexpr int size = 128;
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  __device__ static void meet() { __syncthreads(); }
};
struct WarpTeam {
  static constexpr int size = 32;
  __device__ static int rank() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static void meet() { __syncwarp(); }
};

template <int D>
struct TileLayout {
  static_assert(D % 64 == 0);
  static constexpr int row_bytes = 2 * D;
  static constexpr int chunks = D / 8;
  ATTN_HOST_DEVICE static constexpr int bytes(int rows) { return rows * row_bytes; }
  __device__ static constexpr std::uint32_t offset(int row, int chunk) {
    return static_cast<std::uint32_t>(row * row_bytes + ((chunk ^ (row & 7)) << 4));
  }
};

// Whether rows of the tensor can be copied 16 bytes at a time. The other way gives the same bits.
inline bool in_chunks(const attn_tensor& t) {
  const Index to_a_chunk = t.dtype == ATTN_FP32 ? 4 : 8;
  if (reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0 || t.stride[3] != 1) return false;
  for (int axis = 0; axis < 3; ++axis)
    if (t.shape[axis] > 1 && t.stride[axis] % to_a_chunk != 0) return false;
  return true;
}

// Eight elements into a chunk at `to`, one by one; zeros where `real` is false.
template <class T>
__device__ __forceinline__ void copy_elements(std::uint32_t to, const T* from, Index element, bool real) {
  std::uint32_t word[4] = {};
  if (real) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      word[e / 2] |= static_cast<std::uint32_t>(*reinterpret_cast<const std::uint16_t*>(from + e * element))
                     << 16 * (e % 2);
  }
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
               : "memory");
}

// How the elements of a row lie in memory, and whether it is read in chunks.
struct RowFormat {
  int d;
  Index element;
  bool chunked;
};

// Fills Rows rows of D elements from consecutive rows `stride` elements apart, with zeros from row `valid` and from
// element d on: what stands in memory there does not enter. The copies may be under way on return: commit_copies,
// wait_for_copies and the team's meet() complete them. policy: of the L2 cache, or nothing.
template <class T, int D, int Rows, class Team, class... Policy>
__device__ __forceinline__ void load_tile(std::uint32_t tile, const T* first, Index stride, int valid,
                                          const RowFormat& format, Policy... policy) {
  using Layout = TileLayout<D>;
  static_assert(Team::size % Layout::chunks == 0);
  constexpr int step = Team::size / Layout::chunks;
  const int chunk = Team::rank() % Layout::chunks, start = Team::rank() / Layout::chunks;
  const bool inside = 8 * chunk < format.d;
  const T* from = first + start * stride + 8 * chunk * format.element;
  if (format.chunked) {
#pragma unroll
    for (int row = start; row < start + Rows; row += step, from += step * stride)
      copy_async(tile + Layout::offset(row, chunk), from, inside && row < valid, policy...);
  } else {
#pragma unroll 1
    for (int row = start; row < Rows; row += step, from += step * stride)
      copy_elements(tile + Layout::offset(row, chunk), from, format.element, inside && row < valid);
  }
}

// The same for rows that lie anywhere: row_at(row) points to one.
template <class T, int D, int Rows, class Team, class RowAt>
__device__ __forceinline__ void gather_tile(std::uint32_t tile, int valid, const RowFormat& format, RowAt row_at) {
  using Layout = TileLayout<D>;
#pragma unroll 1
  for (int at = Team::rank(); at < Rows * Layout::chunks; at += Team::size) {
    const int row = at / Layout::chunks, chunk = at % Layout::chunks;
    const bool real = 8 * chunk < format.d && row < valid;
    const T* from = row_at(real ? row : 0) + 8 * chunk * format.element;
    if (format.chunked)
      copy_async(tile + Layout::offset(row, chunk), from, real);
    else
      copy_elements(tile + Layout::offset(row, chunk), from, format.element, real);
  }
}

}  // namespace attn
