// How the headers of impl/core stay usable from device code: one mark, one fused multiply-add, one bit cast. Nothing in
// impl/core includes a header that a device compiler cannot take.
#pragma once

#if defined(__CUDACC__)
#define ATTN_HOST_DEVICE __host__ __device__
#else
#define ATTN_HOST_DEVICE
#endif

namespace attn {

// round(a b + c), one rounding. Not constexpr: clang 14 does not evaluate the builtin.
ATTN_HOST_DEVICE inline float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return ::fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
ATTN_HOST_DEVICE inline double fused(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

// std::bit_cast without <bit>.
template <class To, class From>
ATTN_HOST_DEVICE constexpr To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace attn
