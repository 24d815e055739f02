// The kernel: one warp loads, the other warpgroups compute. Blocks stay and take query blocks round by round.
#pragma once

#include "impl/cuda/hopper/consume.cuh"
#include "impl/cuda/hopper/planner.cuh"
#include "impl/cuda/hopper/produce.cuh"
#include "impl/cuda/launch.h"

namespace attn::hopper {

template <class T, class Tile, bool TensorMask>
__global__ void __launch_bounds__(Tile::threads, 1) forward_kernel(const __grid_constant__ Parameters a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<T, Tile>*>(memory);
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  const int thread = thread_index(), group = uniform(thread / group_size);
  if (group == 0) {
    lower_registers<Tile::loading_registers>();
    if (thread < warp_size) Producer<T, Tile, TensorMask>{a, shared}.run();
    if (thread == warp_size) Planner<T, Tile>{a, shared}.run();
  } else {
    raise_registers<Tile::computing_registers>();
    constexpr float log2_e = 0x1.715476p0f;
    Consumer<T, Tile, TensorMask>{a, shared, thread % group_size, group - 1, a.problem.scale * log2_e}.run();
  }
#else
  __trap();  // built for another architecture: see built_for_hopper
#endif
}

// Whether the code that the device would run has these instructions. Built without sm_90a there is PTX for an older
// architecture only, which a Hopper device takes too.
template <class T, class Tile, bool TensorMask>
bool built_for_hopper() {
  static const bool answer = [] {
    cudaFuncAttributes attributes{};
    const cudaError_t error =
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(forward_kernel<T, Tile, TensorMask>));
    return error != cudaSuccess || attributes.ptxVersion <= 0 || attributes.ptxVersion >= 90;
  }();
  return answer;
}

// Enqueues the kernel on one block for each multiprocessor, or fewer.
template <class T, class Tile, bool TensorMask>
cudaError_t launch(const Parameters& parameters, int multiprocessors, cudaStream_t stream) {
  constexpr std::size_t bytes = sizeof(Shared<T, Tile>);
  static_assert(bytes <= 227 * 1024);
  const auto kernel = forward_kernel<T, Tile, TensorMask>;
  cudaError_t error = allow_shared(kernel, bytes);
  if (error == cudaSuccess && parameters.counter)
    error = cudaMemsetAsync(parameters.counter, 0, sizeof *parameters.counter, stream);
  if (error != cudaSuccess) return error;
  const auto total = parameters.order.total();
  const unsigned blocks =
      total < static_cast<unsigned>(multiprocessors) ? total : static_cast<unsigned>(multiprocessors);
  kernel<<<blocks, Tile::threads, bytes, stream>>>(parameters);
  return cudaGetLastError();
}

}  // namespace attn::hopper
