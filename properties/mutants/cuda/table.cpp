#include "properties/mutants/cuda/device_mutants.h"

namespace attest::mutants {
namespace {

using enum DeviceFlavour;

constexpr std::string_view kFp32 = "fp32.exp2.fa2", kFp16 = "fp16 of fp32.exp2.fa2", kSplit = "fp32.exp2.split";

constexpr DeviceMutant row(DeviceBug bug, DeviceFlavour flavour, std::string_view name, std::string_view bug_class,
                           std::string_view description, std::string_view killer) {
  return {bug,
          flavour,
          {Bug::none, name, bug_class, description, killer,
           flavour == fp16    ? kFp16
           : flavour == split ? kSplit
                              : kFp32}};
}

constexpr DeviceMutant kTable[] = {
    row(DeviceBug::missing_barrier, fp32, "cuda.missing-barrier", "race",
        "weights in shared memory are read without a barrier", "racecheck"),
    row(DeviceBug::barrier_in_branch, fp32, "cuda.barrier-in-branch", "divergence",
        "the barrier after a tile is met only by threads that own a column", "synccheck"),
    row(DeviceBug::unwaited_copy, fp32, "cuda.unwaited-copy", "race",
        "values copied by cp.async are read without a wait", "racecheck"),
    row(DeviceBug::half_warp_reduction, fp32, "cuda.half-warp-reduction", "warp shuffle",
        "sums and maxima cover half a warp", "encloses"),
    row(DeviceBug::stale_maximum, fp32, "cuda.stale-maximum", "broadcast between warps",
        "all warps but the first use the maximum of the tile before", "encloses"),
    row(DeviceBug::atomic_order, split, "cuda.atomic-order", "race",
        "splits are added to O by atomics, in the order in which they come", "deterministic"),
    row(DeviceBug::weights_read_past_tile, fp32, "cuda.weights-read-past-tile", "out of bounds",
        "threads without a key read a weight behind the block's shared memory", "memcheck"),
    row(DeviceBug::keys_read_past_end, fp32, "cuda.keys-read-past-end", "out of bounds",
        "the key behind the last is read ahead", "memcheck"),
    row(DeviceBug::shared_uninitialised, fp32, "cuda.shared-uninitialised", "uninitialised memory",
        "O grows upon what stood in shared memory", "unwritten"),
    row(DeviceBug::empty_split_unwritten, split, "cuda.empty-split-unwritten", "uninitialised memory",
        "a split without keys leaves its LSE in the workspace unwritten", "initcheck"),
    row(DeviceBug::offset_32_bit, fp16, "cuda.offset-32-bit", "narrow offsets", "key offsets wrap at 2^31 elements",
        "encloses"),
    row(DeviceBug::last_key_unsigned, fp32, "cuda.last-key-unsigned", "out of bounds",
        "the last key is read ahead by an unsigned index: -1 is 2^32 - 1 in a row without keys", "fully-masked-row"),
    row(DeviceBug::last_rows_unwritten, split, "cuda.last-rows-unwritten", "launch bounds",
        "rows of the last partial block are not merged", "encloses"),
    row(DeviceBug::default_stream, fp32, "cuda.default-stream", "stream order",
        "launched on the default stream, not on the problem's", "encloses"),
    row(DeviceBug::splits_by_batch, split, "cuda.splits-by-batch", "batch size changes bits",
        "as many splits as batch entries", "batch-invariant"),
    row(DeviceBug::combine_stride, split, "cuda.combine-stride", "split ranges",
        "the merge reads LSE as [splits][rows], it stands in [rows][splits]", "encloses"),
    row(DeviceBug::tail_zero_filled, fp32, "cuda.tail-zero-filled", "last partial tile",
        "the zeros behind the last key of a tile weigh exp(0 - m)", "encloses"),
    row(DeviceBug::accumulator_in_16_bit, fp16, "cuda.accumulator-in-16-bit", "narrow accumulation",
        "P V accumulates in fp16", "encloses"),
};

}  // namespace

std::span<const DeviceMutant> device_table() { return kTable; }

}  // namespace attest::mutants
