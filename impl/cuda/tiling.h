// Tiles of the CUDA kernels, which their Contracts name: a full block of queries and of keys.
#pragma once

#include <cstdint>

namespace attn {

struct CudaTiles {
  std::int64_t block_q, block_k;
  std::int64_t workspace = 0;  // bytes beyond what the algorithm needs
};
inline constexpr CudaTiles cuda_mma_tiles = {64, 64};
inline constexpr CudaTiles cuda_decode_tiles = {16, 32};  // of rows packed from the heads of a group
inline constexpr CudaTiles cuda_simt_tiles = {128, 64};
inline constexpr CudaTiles cuda_hopper_tiles = {128, 80,
                                                256};  // the smallest of its tiles; a counter that hands out blocks
inline constexpr std::int64_t cuda_most_splits = 128;
inline constexpr std::int64_t cuda_most_scan_parts = 1024;  // of a row of scores

// Each array in a workspace starts on such a border.
inline constexpr std::int64_t cuda_alignment = 256;

}  // namespace attn
