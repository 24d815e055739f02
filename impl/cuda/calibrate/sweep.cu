// All 2^32 inputs of a special function. A block takes a part of a binade, its threads every blockDim-th input of it.
#include <cstring>

#include "impl/cuda/calibrate/device_array.h"
#include "impl/cuda/calibrate/special.cuh"
#include "impl/cuda/mma.cuh"

namespace attn::calibrate {

namespace {

constexpr unsigned threads = 128, parts = 32, part_size = (1u << 23) / parts, binades = 512;
constexpr double per_u = 0x1p24;

// Floats as whole numbers in order: their distance counts ulps.
__device__ std::int64_t place(float x) {
  const std::uint32_t bits = __float_as_uint(x);
  return bits >> 31 ? -static_cast<std::int64_t>(bits & 0x7fffffffu) : bits;
}

// R within 2 of its own ulps of the middle between two floats, where its 29 bits beyond fp32 are 1 0...0.
__device__ bool is_doubtful(double reference) {
  const int rest = static_cast<int>(__double_as_longlong(reference) & 0x1fffffff) - (1 << 28);
  return rest >= -2 && rest <= 2;
}

__device__ void count_error(Tally& t, Function f, float x, float y, double reference, double spared) {
  const auto extreme = [&](double size) { return Extreme{size, __float_as_uint(x), __float_as_uint(y)}; };
  const float rounded = static_cast<float>(reference);
  ++t.results;
  t.unrounded += __float_as_uint(y) != __float_as_uint(rounded);
  t.doubtful += is_doubtful(reference);
  const double distance = static_cast<double>(llabs(place(y) - place(rounded)));
  const double error = static_cast<double>(y) - reference, absolute = fabs(error);
  const double relative = reference != 0 ? error / reference : 0;
  const int exponent = static_cast<int>(__double_as_longlong(reference) >> 52 & 2047) - 1023;
  t.undocumented += breaks_documented(f, x, distance, absolute, fabs(relative));
  keep_larger(t.distance, extreme(distance));
  keep_larger(t.absolute, extreme(absolute * per_u));
  if (reference == 0) return;
  keep_larger(t.above, extreme(relative * per_u));
  keep_larger(t.below, extreme(-relative * per_u));
  if (absolute * per_u > spared) keep_larger(t.beyond_absolute, extreme(fabs(relative) * per_u));
  keep_larger(t.ulps, extreme(scalbn(absolute, 23 - exponent)));
  t.sum += relative * per_u;
  t.squares += relative * per_u * (relative * per_u);
}

__device__ void count(Tally& t, Function f, float x, float y, double reference, double spared) {
  const float rounded = static_cast<float>(reference);
  if (isnan(reference) || isnan(y)) {
    t.misclassified += isnan(reference) != isnan(y);
  } else if (reference != 0 && fabs(reference) < 0x1p-126) {
    ++t.small;
    t.small_to_zero += y == 0;
    t.small_unrounded += __float_as_uint(y) != __float_as_uint(rounded);
  } else if (isinf(rounded)) {
    ++t.overflows;
    t.misclassified += y != rounded;
  } else if (isinf(y) || (y == 0) != (reference == 0)) {
    ++t.misclassified;
  } else {
    count_error(t, f, x, y, reference, spared);
  }
}

__global__ void __launch_bounds__(threads) sweep_part(Function f, double spared, Tally* out) {
  __shared__ alignas(Tally) unsigned char storage[threads * sizeof(Tally)];
  Tally* shared = reinterpret_cast<Tally*>(storage);
  Tally t;
  const std::uint32_t first = blockIdx.x * part_size;
  for (std::uint32_t i = threadIdx.x; i < part_size; i += threads) {
    const float x = __uint_as_float(first + i), y = value(f, x), next = value(f, __uint_as_float(first + i + 1));
    count(t, f, x, y, reference(f, x), spared);
    // One bit more is further from zero: up where the input is positive. A NaN is in no order.
    const bool rises = !signbit(x) != falls(f);
    t.disordered += rises ? next < y : next > y;
  }
  shared[threadIdx.x] = t;
  __syncthreads();
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) add(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = shared[0];
}

__global__ void evaluate_all(Function f, const std::uint32_t* x, std::uint32_t* y, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    y[i] = __float_as_uint(value(f, __uint_as_float(x[i])));
}

// Calls f(bits) for all 2^32 and adds up what it returns.
template <class F>
__device__ void count_all(F f, unsigned long long* total) {
  unsigned long long count = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < std::uint64_t{1} << 32; i += stride)
    count += f(static_cast<std::uint32_t>(i));
  if (count > 0) atomicAdd(total, count);
}

__global__ void differences(Function f, Function g, unsigned long long* total) {
  count_all(
      [&](std::uint32_t bits) {
        const float x = __uint_as_float(bits), y = value(f, x), z = value(g, x);
        return __float_as_uint(y) != __float_as_uint(z) && !(isnan(y) && isnan(z)) ? 1u : 0u;
      },
      total);
}

template <class Native, class T>
__device__ unsigned misrounded_lanes(std::uint32_t bits) {
  const float x = __uint_as_float(bits);
  const T want = convert<T>(x);
  const auto differs = [&](std::uint32_t got) {
    return isnan(x) ? factor(T{static_cast<std::uint16_t>(got)}).exponent != not_finite ||
                          factor(T{static_cast<std::uint16_t>(got)}).significand != 0
                    : got != want.bits;
  };
  return (differs(pack_rounded<Native>(x, 1.0f) & 0xffffu) ? 1u : 0u) +
         (differs(pack_rounded<Native>(1.0f, x) >> 16) ? 1u : 0u);
}

template <class Native, class T>
__global__ void misrounded(unsigned long long* total) {
  count_all([](std::uint32_t bits) { return misrounded_lanes<Native, T>(bits); }, total);
}

constexpr unsigned count_blocks = 2048, count_threads = 256;

bool take_count(DeviceArray<unsigned long long>& total, const char* what, std::uint64_t& count, std::string& why) {
  count = total.download()[0];
  return succeeded(total.error(), what, why);
}

}  // namespace

bool sweep(Function f, double spared, Sweep& result, std::string& why) {
  DeviceArray<Tally> tallies(std::size_t{binades} * parts);
  if (tallies.error() == cudaSuccess) sweep_part<<<binades * parts, threads>>>(f, spared, tallies.data());
  const std::vector<Tally> all = tallies.download();
  if (!succeeded(tallies.error(), "sweep", why)) return false;
  result = {};
  for (std::size_t i = 0; i < all.size(); ++i) add(result[i / parts], all[i]);
  return true;
}

bool evaluate(Function f, std::span<const std::uint32_t> inputs, std::span<std::uint32_t> outputs, std::string& why) {
  DeviceArray<std::uint32_t> x(inputs.size()), y(inputs.size());
  x.upload(inputs.data());
  if (x.error() == cudaSuccess && y.error() == cudaSuccess)
    evaluate_all<<<1, 256>>>(f, x.data(), y.data(), static_cast<int>(inputs.size()));
  const std::vector<std::uint32_t> all = y.download();
  if (!succeeded(x.error(), "evaluate", why) || !succeeded(y.error(), "evaluate", why)) return false;
  std::memcpy(outputs.data(), all.data(), all.size() * sizeof(std::uint32_t));
  return true;
}

bool count_differences(Function f, Function g, std::uint64_t& count, std::string& why) {
  DeviceArray<unsigned long long> total(1);
  if (total.error() == cudaSuccess) differences<<<count_blocks, count_threads>>>(f, g, total.data());
  return take_count(total, "count_differences", count, why);
}

bool count_misrounded(CudaFormat format, std::uint64_t& count, std::string& why) {
  DeviceArray<unsigned long long> total(1);
  if (total.error() == cudaSuccess) {
    if (format == CudaFormat::bf16)
      misrounded<__nv_bfloat16, Bfloat16><<<count_blocks, count_threads>>>(total.data());
    else
      misrounded<__half, Half><<<count_blocks, count_threads>>>(total.data());
  }
  return take_count(total, "count_misrounded", count, why);
}

}  // namespace attn::calibrate
