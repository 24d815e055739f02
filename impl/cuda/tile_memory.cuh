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
  if (reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0 || t.stride[3] != 1) return false;
  for (int axis = 0; axis < 3; ++axis)
    if (t.shape[axis] > 1 && t.stride[axis] % 8 != 0) return false;
  return true;
}

// Fills `rows` rows of D elements: row r < valid with the d elements at row_at(r), everything else with zeros: what
// stands in memory beyond d, or in rows that nobody sees, does not enter. The copies may be under way on return:
// commit_copies, wait_for_copies and the team's meet() complete them.
template <class T, int D, class Team, class RowAt>
__device__ __forceinline__ void load_tile(std::uint32_t tile, int rows, int valid, int d, bool chunked, Index element,
                                          RowAt row_at) {
  using Layout = TileLayout<D>;
  constexpr int step = Team::size / Layout::chunks > 0 ? Team::size / Layout::chunks : 1;
  static_assert(Team::size % Layout::chunks == 0);
  const int chunk = Team::rank() % Layout::chunks;
  const bool inside = 8 * chunk < d;
  if (chunked) {
#pragma unroll
    for (int row = Team::rank() / Layout::chunks; row < rows; row += step) {
      copy_async(tile + Layout::offset(row, chunk), row_at(row) + 8 * chunk, inside && row < valid);
    }
    return;
  }
#pragma unroll 1
  for (int row = Team::rank() / Layout::chunks; row < rows; row += step) {
    std::uint32_t word[4] = {};
    if (inside && row < valid) {
      const T* from = row_at(row) + 8 * chunk * element;
#pragma unroll
      for (int e = 0; e < 8; ++e)
        word[e / 2] |= static_cast<std::uint32_t>(*reinterpret_cast<const std::uint16_t*>(from + e * element))
                       << 16 * (e % 2);
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(tile + Layout::offset(row, chunk)), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
  }
}

}  // namespace attn
