// Descriptions of q, k and v for the tensor memory accelerator: four axes (element, row, head, batch), read in boxes of
// 64 elements by some rows. What a box reaches beyond the tensor arrives as zero: ragged ends and head dims that are
// not a multiple of 64 are padded for free.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "impl/attention.h"
#include "impl/reject.h"

namespace attn::hopper {

constexpr int panel_columns = 64;  // elements of 16 bit in a row of 128 bytes, the widest swizzle

// A map, and which axes are walked at all: a broadcast axis (stride 0) is described with extent 1.
struct TensorMap {
  CUtensorMap map;
  int head_step, batch_step;  // 1, or 0 for a broadcast axis
};

// Whether the engine can read the tensor; refuses with the reason if not.
bool check_mappable(const char* name, const attn_tensor& tensor, Refusal& refusal);

// A tensor without elements is left undescribed; it must not be read.
cudaError_t describe(const attn_tensor& tensor, int box_rows, TensorMap& out);

}  // namespace attn::hopper
