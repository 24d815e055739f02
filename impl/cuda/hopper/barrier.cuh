// Synchronisation of a warp-specialised block: mbarriers between the copy engine and the matrix warps, named barriers
// between warpgroups, and the register quota of a warpgroup. PTX ISA 8.0, sections "mbarrier", "bar", "setmaxnreg".
#pragma once

#include <cstdint>

namespace attn::hopper {

constexpr int warp_size = 32;
constexpr int group_size = 128;  // threads of a warpgroup

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// The thread's place in its block, read once: the compiler would read the special register anew at each use.
__device__ __forceinline__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
// The same value in all threads of the warp, in a form that tells the compiler so.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

// A phase ends when `count` arrivals and all announced bytes have come in; waiting names the parity of the phase.
struct Barrier {
  std::uint64_t word;

  __device__ void init(int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(count));
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Arrives and announces bytes that the copy engine will bring.
  __device__ __forceinline__ void arrive_expecting(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  __device__ __forceinline__ void wait(std::uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(this)),
        "r"(parity)
        : "memory");
  }
};

// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Orders this thread's ordinary stores to shared memory before later reads by the tensor cores and the copy engine.
__device__ __forceinline__ void publish_shared_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Position in a ring of buffers. A fresh ring is full of free buffers: the producer waits for the opposite parity.
template <int Stages>
struct RingPosition {
  static_assert((Stages & (Stages - 1)) == 0, "the count wraps around");
  std::uint32_t count = 0;
  __device__ __forceinline__ int stage() const { return static_cast<int>(count % Stages); }
  __device__ __forceinline__ std::uint32_t parity() const { return count / Stages % 2; }
  // The stage some steps back.
  __device__ __forceinline__ int before(int steps) const {
    return static_cast<int>((count - static_cast<std::uint32_t>(steps)) % Stages);
  }
};

// Named barriers; 0 is __syncthreads'. `threads` counts those that sync and those that merely arrive.
__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Moves registers between warpgroups; executed by all warps of one.
template <int Registers>
__device__ __forceinline__ void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace attn::hopper
