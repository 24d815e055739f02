// The planted bugs of the readable CUDA kernel: what goes wrong on a GPU and nowhere else, or there first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/attention.h"

namespace attest::mutants {

enum class DeviceBug {
  none,  // the control: the kernel as it should be

  // threads of a block, lanes of a warp
  missing_barrier,      // the weights in shared memory are read without a barrier after they are written
  barrier_in_branch,    // the barrier at the end of a tile is met only by threads that own a column
  unwaited_copy,        // cp.async into shared memory, and no wait before it is read
  half_warp_reduction,  // sums and maxima over a warp begin at a distance of 8 lanes: they cover half a warp
  stale_maximum,        // the first warp has the new maximum, the others that of the tile before
  atomic_order,         // partial results are added to O by atomicAdd, in the order in which they come

  // memory
  weights_read_past_tile,  // every thread reads a weight, though the tile has fewer: past the shared memory
  keys_read_past_end,      // the key after the last is read ahead
  shared_uninitialised,    // O grows in shared memory upon what stood there
  empty_split_unwritten,   // a split without keys leaves its LSE in the workspace as it was
  offset_32_bit,           // offsets of keys are formed in 32 bits
  last_key_unsigned,       // the last key is read ahead by an unsigned index: of a row without keys, key 2^32 - 1

  // launches
  last_rows_unwritten,  // as many blocks as there are whole blocks of rows
  default_stream,       // launched on the default stream, not on the problem's
  splits_by_batch,      // as many splits as batch entries
  combine_stride,       // LSE of split and row are taken from [splits][rows], but stand in [rows][splits]

  // tails and precision
  tail_zero_filled,      // the tile behind the last key holds zeros that weigh exp(0 - m)
  accumulator_in_16_bit  // P V accumulates in fp16
};

// Formats and splits of the readable kernel.
enum class DeviceFlavour { fp32, fp16, split };

// The launches of one problem, whose pointers address the device's memory. ATTN_NO_DEVICE in a build without CUDA.
std::int32_t run_device_forward(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p, void* workspace, char* why,
                                std::size_t why_size);

// The same kernel's limits: bytes of shared memory, of which a block has at most kMostShared; keys of a tile, parts of
// the keys, workspace in bytes.
inline constexpr std::int64_t kDeviceKeys = 32, kDeviceSplits = 8, kMostShared = 160 * 1024;
std::int64_t shared_bytes(DeviceFlavour flavour, const attn_problem& p);
std::int64_t split_count(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p);
std::int64_t partial_bytes(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p);

// Whether an error has ended the device's context: nothing runs in this process any more.
bool device_lost();

}  // namespace attest::mutants
