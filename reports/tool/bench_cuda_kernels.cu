#include "reports/tool/bench_cuda_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define ATTEST_TEXT(x) #x
#define ATTEST_VERSION(a, b, c) ATTEST_TEXT(a) "." ATTEST_TEXT(b) "." ATTEST_TEXT(c)

namespace attest {
namespace {

constexpr int threads = 256, most_blocks = 132 * 16;

unsigned blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

__global__ void spin(std::uint64_t nanoseconds) {
  const auto now = [] {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  };
  for (const std::uint64_t begin = now(); now() - begin < nanoseconds;) {
  }
}

// Steele, Lea and Flood, SplitMix64: a bijection of the counter.
__device__ std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

__device__ void put(float* to, float x) { *to = x; }
__device__ void put(__half* to, float x) { *to = __float2half_rn(x); }
__device__ void put(__nv_bfloat16* to, float x) { *to = __float2bfloat16_rn(x); }
__device__ float get(float x) { return x; }
__device__ float get(__half x) { return __half2float(x); }
__device__ float get(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__global__ void fill(T* data, std::int64_t count, std::uint64_t seed, float mean, float deviation) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; 2 * pair < count;
       pair += step) {
    const std::uint64_t bits = mix(mix(seed) + static_cast<std::uint64_t>(pair) * 0x9e3779b97f4a7c15u);
    const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;   // (0, 1]
    const float angle = static_cast<float>(bits & 0xffffffu) * 0x1p-23f;  // in half turns
    const float radius = deviation * sqrtf(-2.0f * __logf(u));
    float sine, cosine;
    sincospif(angle, &sine, &cosine);
    put(data + 2 * pair, mean + radius * cosine);
    if (2 * pair + 1 < count) put(data + 2 * pair + 1, mean + radius * sine);
  }
}

template <class T>
__global__ void measure_gap(const T* a, const T* b, std::int64_t count, BenchGap* gap) {
  float value = 0, largest = 0;
  unsigned long long nonfinite = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const float x = get(a[i]), y = get(b[i]), d = fabsf(x - y);
    if (isfinite(d))
      value = fmaxf(value, d);
    else
      ++nonfinite;
    if (isfinite(y)) largest = fmaxf(largest, fabsf(y));
  }
  atomicMax(&gap->value, __float_as_uint(value));
  atomicMax(&gap->largest, __float_as_uint(largest));
  if (nonfinite > 0) atomicAdd(&gap->nonfinite, nonfinite);
}

template <class Op>
__device__ double reduce(double x, Op op) {
  __shared__ double shared[threads];
  __syncthreads();
  shared[threadIdx.x] = x;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

struct Rows {
  const float *scores, *m_in, *l_in;
  float *m, *l;
  std::int64_t count, columns;
};

__global__ void __launch_bounds__(threads) scan_by_definition(const Rows r) {
  for (std::int64_t row = blockIdx.x; row < r.count; row += gridDim.x) {
    const float* x = r.scores + row * r.columns;
    double m = r.m_in[row], sum = 0;
    for (std::int64_t j = threadIdx.x; j < r.columns; j += threads) m = fmax(m, static_cast<double>(x[j]));
    m = reduce(m, [](double a, double b) { return fmax(a, b); });
    for (std::int64_t j = threadIdx.x; j < r.columns; j += threads) sum += exp(static_cast<double>(x[j]) - m);
    sum = reduce(sum, [](double a, double b) { return a + b; });
    if (threadIdx.x == 0) {
      r.m[row] = static_cast<float>(m);
      r.l[row] = static_cast<float>(r.l_in[row] * exp(r.m_in[row] - m) + sum);
    }
  }
}

// Calls f with a pointer type of the format.
template <class F>
cudaError_t by_format(std::int32_t dtype, F f) {
  if (dtype == ATTN_BF16)
    f(static_cast<__nv_bfloat16*>(nullptr));
  else if (dtype == ATTN_FP16)
    f(static_cast<__half*>(nullptr));
  else
    f(static_cast<float*>(nullptr));
  return cudaGetLastError();
}

}  // namespace

cudaError_t bench_spin(std::uint64_t nanoseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t bench_fill(void* data, std::int32_t dtype, std::int64_t count, std::uint64_t seed, float mean,
                       float deviation, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return by_format(dtype, [&](auto* type) {
    fill<<<blocks_for(count), threads, 0, stream>>>(static_cast<decltype(type)>(data), count, seed, mean, deviation);
  });
}

cudaError_t bench_gap(const void* a, const void* b, std::int32_t dtype, std::int64_t count, BenchGap* gap,
                      cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return by_format(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    measure_gap<<<blocks_for(count), threads, 0, stream>>>(static_cast<const T*>(a), static_cast<const T*>(b), count,
                                                           gap);
  });
}

cudaError_t bench_reference_scan(const attn_problem& p, cudaStream_t stream) {
  const Rows r = {static_cast<const float*>(p.scores.data),
                  static_cast<const float*>(p.a.m.data),
                  static_cast<const float*>(p.a.l.data),
                  static_cast<float*>(p.out.m.data),
                  static_cast<float*>(p.out.l.data),
                  p.scores.shape[0],
                  p.scores.shape[1]};
  scan_by_definition<<<static_cast<unsigned>(r.count < most_blocks ? r.count : most_blocks), threads, 0, stream>>>(r);
  return cudaGetLastError();
}

const char* bench_cuda_compiler() {
  return ATTEST_VERSION(__CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
}

}  // namespace attest
