// The rows of a tile and what they see of a key tile.
//
// A plain tile holds consecutive queries of one head. A packed tile holds, for each query in turn, all the heads that
// read one kv head: packed row r is query r / group of head first_head + r % group.
#pragma once

#include "impl/cuda/forward_view.cuh"

namespace attn {

template <bool Packed>
struct TileRows {
  Index batch, first_head;
  Index query;          // of row 0
  std::uint32_t phase;  // packed: row 0 is this many heads into its query
  std::uint32_t group;
  int count;  // rows that exist; the tile may be larger

  __device__ Index head(int row) const {
    return Packed ? first_head + (phase + static_cast<std::uint32_t>(row)) % group : first_head;
  }
  __device__ Index query_of(int row) const {
    return query + (Packed ? (phase + static_cast<std::uint32_t>(row)) / group : static_cast<std::uint32_t>(row));
  }
  __device__ IndexRange queries() const { return {query, count > 0 ? query_of(count - 1) + 1 : query}; }

  // Number of leading keys of `keys` that a row sees by position; none for a row that does not exist.
  __device__ int visible_keys(const Visibility& see, int row, IndexRange keys) const {
    if (row >= count) return 0;
    return static_cast<int>(larger(0, smaller(see.visible_end(query_of(row)), keys.end) - keys.begin));
  }
};

// Tensor masks reach the threads that hold the scores by way of shared memory: one code per row and key of a tile.
namespace mask_code {
inline constexpr std::uint8_t visible = 0, hidden = 1, invalid = 2;  // invalid: the score becomes NaN
}

template <int N, class Team, bool Packed>
__device__ void stage_mask(std::uint8_t* codes, int rows, const ForwardView& view, const TileRows<Packed>& tile,
                           const Visibility& see, IndexRange keys) {
#pragma unroll 1
  for (int at = Team::rank(); at < rows * N; at += Team::size) {
    const int row = at / N, key = at % N;
    std::uint8_t code = mask_code::hidden;
    if (key < tile.visible_keys(see, row, keys)) {
      const float probe = view.masked(0.0f, tile.batch, tile.head(row), tile.query_of(row), keys.begin + key);
      code = probe == 0.0f ? mask_code::visible : probe != probe ? mask_code::invalid : mask_code::hidden;
    }
    codes[at] = code;
  }
}

// Values of keys that no row of the tile sees become 0: their weights are 0, but 0 times NaN is not.
template <int N, class Layout, class Team>
__device__ void clear_unseen_values(std::uint32_t tile, const std::uint8_t* codes, int rows) {
#pragma unroll 1
  for (int at = Team::rank(); at < N * Layout::chunks; at += Team::size) {
    const int key = at / Layout::chunks;
    bool seen = false;
#pragma unroll 4
    for (int row = 0; row < rows; ++row) seen = seen || codes[row * N + key] != mask_code::hidden;
    if (!seen)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                   :
                   : "r"(tile + Layout::offset(key, at % Layout::chunks)), "r"(0)
                   : "memory");
  }
}

}  // namespace attn
