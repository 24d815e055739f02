// Random tiles through a matrix instruction and, element by element, through the model of its accumulation.
//
// A block is one warpgroup. Its tile is 64 rows of a times N columns of b, 16 deep for each of Steps instructions. Each
// thread holds accumulators of rows r = 16 warp + lane / 4 and r + 8, of every 8 columns those at c = 2 (lane % 4), c
// + 1.
#include <type_traits>

#include "impl/cuda/calibrate/device_array.h"
#include "impl/cuda/calibrate/measure.h"
#include "impl/cuda/calibrate/wgmma.cuh"
#include "impl/cuda/launch.h"
#include "impl/cuda/mma.cuh"

namespace attn::calibrate {

namespace {

constexpr int threads = 128, rows = 64, most_examples = 3;

struct Models {
  Accumulation list[most_models];
  int count = 0;
};

struct Seen {
  unsigned long long dots, nan, infinite, small, zero;
};
struct Counters {
  Seen seen;
  unsigned long long misses[most_models];
  unsigned int examples;
  Miss example[most_examples];
};

template <class T>
using Native = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

__host__ __device__ constexpr int columns_of(Instruction i) {
  return i == Instruction::wgmma_64 || i == Instruction::wgmma_64_reg ? 64 : 8;
}

// 16-deep tiles in core-matrix order (wgmma.cuh), one after another for each step.
template <int Rows>
__device__ int place(int row, int k) {
  return k / depth * (Rows * depth) + (k % depth / 8 * (Rows / 8) + row / 8) * 64 + row % 8 * 8 + k % 8;
}

template <class T, int Rows, int Steps>
__device__ void fill(T* tile, const Inputs& inputs, bool is_b, std::uint64_t key) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows * depth * Steps; i += threads) {
    const int row = i / (depth * Steps), k = i % (depth * Steps);
    tile[place<Rows>(row, k)] = operand<T>(inputs, is_b, spread(key + static_cast<std::uint64_t>(row)), k);
  }
}

__device__ int my_row() { return static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4); }
__device__ int my_column() { return static_cast<int>(threadIdx.x % 4 * 2); }
__device__ int row_of(int i) { return my_row() + 8 * (i >> 1 & 1); }
__device__ int column_of(int i) { return 8 * (i / 4) + my_column() + (i & 1); }

// Two neighbours along k.
template <class T>
__device__ std::uint32_t pair(const T* at) {
  return *reinterpret_cast<const std::uint32_t*>(at);
}

template <class T>
__device__ void load_a(std::uint32_t (&a)[4], const T* tile, int k) {
  for (int i = 0; i < 4; ++i) a[i] = pair(tile + place<rows>(my_row() + 8 * (i & 1), k + my_column() + 8 * (i >> 1)));
}

template <class T, Instruction I, int Steps>
__device__ void multiply(float (&d)[columns_of(I) / 2], const T* a_tile, const T* b_tile, bool keep) {
  constexpr int columns = columns_of(I);
  if constexpr (I == Instruction::mma) {
    for (int s = 0; s < Steps; ++s) {
      std::uint32_t a[4];
      load_a(a, a_tile, depth * s);
      const auto b = [&](int k) {
        return pair(b_tile + place<columns>(static_cast<int>(threadIdx.x % 32 / 4), depth * s + my_column() + k));
      };
      multiply_add<Native<T>>(d, a, b(0), b(8));
    }
  } else {
    constexpr bool in_registers = I == Instruction::wgmma_8_reg || I == Instruction::wgmma_64_reg;
    std::uint32_t a[Steps][4];
    if constexpr (in_registers)
#pragma unroll
      for (int s = 0; s < Steps; ++s) load_a(a[s], a_tile, depth * s);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const std::uint64_t b = plain_descriptor(b_tile + s * columns * depth, columns);
      if constexpr (in_registers)
        Wgmma<Native<T>, columns>::registers(d, a[s], b, s > 0 || keep);
      else
        Wgmma<Native<T>, columns>::shared(d, plain_descriptor(a_tile + s * rows * depth, rows), b, s > 0 || keep);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
}

__device__ void count_class(Seen& seen, std::uint32_t result) {
  const std::uint32_t magnitude = result & 0x7fffffffu;
  ++seen.dots;
  seen.nan += magnitude > infinity_bits;
  seen.infinite += magnitude == infinity_bits;
  seen.small += magnitude > 0 && magnitude < 0x00800000u;
  seen.zero += magnitude == 0;
}

template <class T, int Columns, int Steps>
__device__ void keep_example(Counters* out, const T* a, const T* b, int row, int column, const Miss& found) {
  const unsigned int slot = atomicAdd(&out->examples, 1u);
  if (slot >= most_examples) return;
  Miss& miss = out->example[slot];
  miss.got = found.got, miss.want = found.want, miss.start = found.start, miss.count = depth * Steps;
  for (int k = 0; k < depth * Steps; ++k)
    miss.a[k] = a[place<rows>(row, k)].bits, miss.b[k] = b[place<Columns>(column, k)].bits;
}

template <class T, Instruction I, int Steps>
__global__ void __launch_bounds__(threads)
    compare_tiles(Inputs inputs, std::uint64_t seed, int tiles, bool keep, Models models, Counters* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr bool present = true;
#else
  constexpr bool present = I == Instruction::mma;
#endif
  if constexpr (present) {
    constexpr int columns = columns_of(I);
    __shared__ alignas(128) T a[rows * depth * Steps], b[columns * depth * Steps];
    __shared__ float results[rows * columns];
    __shared__ unsigned int misses[most_models];
    for (int m = static_cast<int>(threadIdx.x); m < most_models; m += threads) misses[m] = 0;
    Seen seen{};
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
      const std::uint64_t key = spread(seed ^ spread(static_cast<std::uint64_t>(tile)));
      const auto start_at = [&](int row, int column) {
        return keep ? start(inputs, key + static_cast<std::uint64_t>(1000 + row * columns + column)) : 0u;
      };
      __syncthreads();
      fill<T, rows, Steps>(a, inputs, false, key);
      fill<T, columns, Steps>(b, inputs, true, key + 500);
      float d[columns / 2];
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) d[i] = __uint_as_float(start_at(row_of(i), column_of(i)));
      if constexpr (I != Instruction::mma)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the stores above are seen by wgmma
      __syncthreads();
      multiply<T, I, Steps>(d, a, b, keep);
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) results[row_of(i) * columns + column_of(i)] = d[i];
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += threads) {
        const int row = i / columns, column = i % columns;
        const std::uint32_t got = __float_as_uint(results[i]), from = start_at(row, column);
        count_class(seen, got);
        const auto products = [&](int k) { return product(a[place<rows>(row, k)], b[place<columns>(column, k)]); };
        for (int m = 0; m < models.count; ++m) {
          const std::uint32_t want = accumulate(products, depth * Steps, from, models.list[m]);
          if (got == want) continue;
          atomicAdd(&misses[m], 1u);
          if (m == 0) keep_example<T, columns, Steps>(out, a, b, row, column, {got, want, from});
        }
      }
    }
    __syncthreads();
    for (int m = static_cast<int>(threadIdx.x); m < models.count; m += threads) atomicAdd(&out->misses[m], misses[m]);
    Seen& all = out->seen;
    atomicAdd(&all.dots, seen.dots), atomicAdd(&all.nan, seen.nan), atomicAdd(&all.infinite, seen.infinite);
    atomicAdd(&all.small, seen.small), atomicAdd(&all.zero, seen.zero);
  }
}

template <class T, Instruction I>
void launch(const Comparison& what, const Inputs& inputs, const Models& models, Counters* out) {
  const std::int64_t tile_size = std::int64_t{rows} * columns_of(I);
  const int tiles = static_cast<int>((what.dots + tile_size - 1) / tile_size);
  const int most_blocks = device_facts(nullptr, 0)->multiprocessors * 8,
            blocks = tiles < most_blocks ? tiles : most_blocks;
  if (what.chain == Chain::one)
    compare_tiles<T, I, 1><<<blocks, threads>>>(inputs, what.seed, tiles, true, models, out);
  else
    compare_tiles<T, I, most_steps>
        <<<blocks, threads>>>(inputs, what.seed, tiles, what.chain == Chain::four, models, out);
}

template <class T>
void launch(const Comparison& what, const Inputs& inputs, const Models& models, Counters* out) {
  switch (what.instruction) {
    case Instruction::mma:
      return launch<T, Instruction::mma>(what, inputs, models, out);
    case Instruction::wgmma_8:
      return launch<T, Instruction::wgmma_8>(what, inputs, models, out);
    case Instruction::wgmma_8_reg:
      return launch<T, Instruction::wgmma_8_reg>(what, inputs, models, out);
    case Instruction::wgmma_64:
      return launch<T, Instruction::wgmma_64>(what, inputs, models, out);
    case Instruction::wgmma_64_reg:
      return launch<T, Instruction::wgmma_64_reg>(what, inputs, models, out);
  }
}

}  // namespace

// Kernels without the instruction count nothing.
bool has(Instruction instruction) {
  if (instruction == Instruction::mma) return true;
  Matches one;
  std::string why;
  const Accumulation model;
  return compare({CudaFormat::fp16, instruction, Chain::one, 0, 1}, narrow_inputs[0], {&model, 1}, one, why) &&
         one.dots > 0;
}

bool compare(const Comparison& what, const Inputs& inputs, std::span<const Accumulation> list, Matches& result,
             std::string& why) {
  Models models;
  for (const Accumulation& m : list)
    if (models.count < most_models) models.list[models.count++] = m;
  DeviceArray<Counters> counters(1);
  if (counters.error() == cudaSuccess) {
    if (what.format == CudaFormat::bf16)
      launch<Bfloat16>(what, inputs, models, counters.data());
    else
      launch<Half>(what, inputs, models, counters.data());
  }
  const Counters c = counters.download()[0];
  if (!succeeded(counters.error(), "compare", why)) return false;
  result = {};
  result.dots = c.seen.dots, result.nan = c.seen.nan, result.infinite = c.seen.infinite;
  result.small = c.seen.small, result.zero = c.seen.zero;
  for (int m = 0; m < models.count; ++m) result.misses[static_cast<std::size_t>(m)] = c.misses[m];
  for (unsigned int i = 0; i < c.examples && i < most_examples; ++i) result.examples.push_back(c.example[i]);
  return true;
}

}  // namespace attn::calibrate
