// wgmma.m64n8k16 and m64n64k16 with both operands, or b alone, in shared memory, k contiguous and without a swizzle.
// PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions"; fragments as in impl/cuda/hopper/wgmma.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace attn::calibrate {

// Core matrices of 8 rows x 16 bytes lie in 128 bytes each, rows of them next to each other, then along k.
// Bits 0-13 address, 16-29 from one core matrix to the next along k, 32-45 to the next 8 rows; in units of 16 bytes.
__device__ __forceinline__ std::uint64_t plain_descriptor(const void* tile, int rows) {
  const std::uint64_t address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile)) & 0x3ffffu;
  const std::uint64_t along_k = static_cast<std::uint64_t>(rows / 8 * 128), along_rows = 128;
  return address / 16 | along_k / 16 << 16 | along_rows / 16 << 32;
}

template <class T, int Columns>
struct Wgmma;

// Operand lists that no function can build; i0 ... number the operands after the accumulators.
// clang-format off
#define ATTN_EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
  "+f"(d[i + 6]), "+f"(d[i + 7])
#define ATTN_SUMS_8 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define ATTN_SUMS_64 ATTN_EIGHT(0), ATTN_EIGHT(8), ATTN_EIGHT(16), ATTN_EIGHT(24)
#define ATTN_NAMES_8 "%0,%1,%2,%3"
#define ATTN_NAMES_64 ATTN_NAMES_8 ",%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define ATTN_WGMMA(type, name, n, i0, i1, i2, i3, i4, i5)                                                           \
  template <>                                                                                                       \
  struct Wgmma<type, n> {                                                                                           \
    static __device__ __forceinline__ void shared(float (&d)[n / 2], std::uint64_t a, std::uint64_t b, int keep) {  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name                                  \
                   " {" ATTN_NAMES_##n "}, %" #i0 ", %" #i1 ", p, 1, 1, 0, 0;\n}"                                   \
                   : ATTN_SUMS_##n : "l"(a), "l"(b), "r"(keep));                                                    \
    }                                                                                                               \
    static __device__ __forceinline__ void registers(float (&d)[n / 2], const std::uint32_t (&a)[4],                \
                                                     std::uint64_t b, int keep) {                                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name                                  \
                   " {" ATTN_NAMES_##n "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p, 1, 1, 0;\n}"       \
                   : ATTN_SUMS_##n : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));                \
    }                                                                                                               \
  }
// clang-format on
ATTN_WGMMA(__half, "f16", 8, 4, 5, 6, 7, 8, 9);
ATTN_WGMMA(__half, "f16", 64, 32, 33, 34, 35, 36, 37);
ATTN_WGMMA(__nv_bfloat16, "bf16", 8, 4, 5, 6, 7, 8, 9);
ATTN_WGMMA(__nv_bfloat16, "bf16", 64, 32, 33, 34, 35, 36, 37);
#undef ATTN_WGMMA
#undef ATTN_NAMES_64
#undef ATTN_NAMES_8
#undef ATTN_SUMS_64
#undef ATTN_SUMS_8
#undef ATTN_EIGHT

}  // namespace attn::calibrate
