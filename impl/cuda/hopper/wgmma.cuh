// The warpgroup matrix instruction: d[64, N] += a[64, 16] b[16, N], 16-bit operands, fp32 accumulators.
// PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions".
//
// Accumulators: thread t of the warpgroup holds rows r = 16 (t / 32) + (t % 32) / 4 and r + 8; of every 8 columns those
// at c = 2 (t % 4) and c + 1: d[4 j .. 4 j + 3] = (r, 8j + c), (r, 8j + c + 1), (r + 8, 8j + c), (r + 8, 8j + c + 1).
// An a operand of 16 columns in registers has the same places, pairs packed: what one product leaves, the next takes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "impl/cuda/hopper/barrier.cuh"

namespace attn::hopper {

// Operands in shared memory: rows of 128 bytes in the 128-byte swizzle, 8 rows an atom of 1024 bytes. Bits 0-13 start
// address, 16-29 leading and 32-45 stride byte offset, all in units of 16 bytes; 62-63 swizzle mode (1: 128 bytes).
struct Descriptor {
  std::uint32_t low;
  static constexpr std::uint32_t high = 1024 / 16 | 1u << 30;  // from 8 rows to the next 8; mode

  // `leading` is from panel to panel where the rows are the contracted axis, else unused.
  __device__ __forceinline__ Descriptor(std::uint32_t address, std::uint32_t leading)
      : low((address & 0x3ffffu) / 16 | leading / 16 << 16) {}
  __device__ __forceinline__ std::uint64_t at(int bytes) const {
    return static_cast<std::uint64_t>(high) << 32 | (low + static_cast<std::uint32_t>(bytes) / 16);
  }
};

// Registers written by ordinary instructions are ready for the next product.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most Pending of the latest groups are unfinished.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Values that a product in flight writes or reads: the compiler must not move their uses across this point.
template <class T, int N>
__device__ __forceinline__ void pin(T (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (std::is_same_v<T, float>) asm volatile("" : "+f"(values[i])::"memory");
    if constexpr (!std::is_same_v<T, float>) asm volatile("" : "+r"(values[i])::"memory");
  }
}

// Operand lists of the asm statements below, which no function can build: names of accumulators %0, %1, ... in tens of
// eight, and the registers that they stand for. The suffix is the number of columns, twice that of registers.
// clang-format off
#define ATTN_NAMES_64 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25," \
  "%26,%27,%28,%29,%30,%31"
#define ATTN_NAMES_80 ATTN_NAMES_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define ATTN_NAMES_128 ATTN_NAMES_80 ",%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58," \
  "%59,%60,%61,%62,%63"
#define ATTN_NAMES_176 ATTN_NAMES_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82," \
  "%83,%84,%85,%86,%87"
#define ATTN_NAMES_256 ATTN_NAMES_176 ",%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105," \
  "%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define ATTN_EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
  "+f"(d[i + 6]), "+f"(d[i + 7])
#define ATTN_SUMS_64 ATTN_EIGHT(0), ATTN_EIGHT(8), ATTN_EIGHT(16), ATTN_EIGHT(24)
#define ATTN_SUMS_80 ATTN_SUMS_64, ATTN_EIGHT(32)
#define ATTN_SUMS_128 ATTN_SUMS_80, ATTN_EIGHT(40), ATTN_EIGHT(48), ATTN_EIGHT(56)
#define ATTN_SUMS_176 ATTN_SUMS_128, ATTN_EIGHT(64), ATTN_EIGHT(72), ATTN_EIGHT(80)
#define ATTN_SUMS_256 ATTN_SUMS_176, ATTN_EIGHT(88), ATTN_EIGHT(96), ATTN_EIGHT(104), ATTN_EIGHT(112), ATTN_EIGHT(120)

// One column count and one format: a from shared memory, or from registers with b stored by column. keep = 0 starts
// from zero. i0 .. i5 number the operands after the accumulators.
#define ATTN_PRODUCT(n, type, name, i0, i1, i2, i3, i4, i5)                                                         \
  template <>                                                                                                       \
  struct Product<type, n> {                                                                                         \
    static __device__ __forceinline__ void shared(float (&d)[n / 2], std::uint64_t a, std::uint64_t b, int keep) {  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name                                  \
                   " {" ATTN_NAMES_##n "}, %" #i0 ", %" #i1 ", p, 1, 1, 0, 0;\n}"                                   \
                   : ATTN_SUMS_##n : "l"(a), "l"(b), "r"(keep));                                                    \
    }                                                                                                               \
    static __device__ __forceinline__ void registers(float (&d)[n / 2], const std::uint32_t* a, std::uint64_t b,    \
                                                     int keep) {                                                    \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name                                  \
                   " {" ATTN_NAMES_##n "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p, 1, 1, 1;\n}"       \
                   : ATTN_SUMS_##n : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));                \
    }                                                                                                               \
  }
#define ATTN_BOTH_FORMATS(n, i0, i1, i2, i3, i4, i5)            \
  ATTN_PRODUCT(n, __half, "f16", i0, i1, i2, i3, i4, i5);       \
  ATTN_PRODUCT(n, __nv_bfloat16, "bf16", i0, i1, i2, i3, i4, i5)
// clang-format on

template <class T, int Columns>
struct Product;
ATTN_BOTH_FORMATS(64, 32, 33, 34, 35, 36, 37);
ATTN_BOTH_FORMATS(80, 40, 41, 42, 43, 44, 45);
ATTN_BOTH_FORMATS(128, 64, 65, 66, 67, 68, 69);
ATTN_BOTH_FORMATS(176, 88, 89, 90, 91, 92, 93);
ATTN_BOTH_FORMATS(256, 128, 129, 130, 131, 132, 133);

#undef ATTN_BOTH_FORMATS
#undef ATTN_PRODUCT
#undef ATTN_SUMS_256
#undef ATTN_SUMS_176
#undef ATTN_SUMS_128
#undef ATTN_SUMS_80
#undef ATTN_SUMS_64
#undef ATTN_EIGHT
#undef ATTN_NAMES_256
#undef ATTN_NAMES_176
#undef ATTN_NAMES_128
#undef ATTN_NAMES_80
#undef ATTN_NAMES_64

// Two weights rounded to nearest even, the first in the low half.
template <class T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t word;
  if constexpr (std::is_same_v<T, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

}  // namespace attn::hopper
