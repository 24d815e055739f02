// A few doubles that are worked on together (GCC and clang vector types), with the operations that operators do not
// give. The same templates run on one double and on Lanes; each lane gets the bits that one double would.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__FMA__) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace attest {

// As wide as registers are: a wider type would be passed in memory, by a convention that compilers warn about.
#if defined(__AVX__)
using Lanes = double __attribute__((vector_size(32)));
using LaneBits = std::uint64_t __attribute__((vector_size(32)));
#else
using Lanes = double __attribute__((vector_size(16)));
using LaneBits = std::uint64_t __attribute__((vector_size(16)));
#endif
inline constexpr std::int64_t lane_count = sizeof(Lanes) / sizeof(double);

template <class T>
inline T broadcast(double x) {
  return T{} + x;
}

inline double fused(double a, double b, double c) { return std::fma(a, b, c); }
inline Lanes fused(Lanes a, Lanes b, Lanes c) {
#if defined(__FMA__) && defined(__AVX2__)
  return _mm256_fmadd_pd(a, b, c);
#else
  for (int i = 0; i < lane_count; ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return c;
#endif
}

inline double magnitude(double x) { return std::fabs(x); }
inline Lanes magnitude(Lanes x) { return std::bit_cast<Lanes>(std::bit_cast<LaneBits>(x) & 0x7fffffffffffffffu); }

// 2^n for an integer -1022 <= n <= 1023 held in a double: its bits stand at the bottom of n + 1.5 * 2^52.
inline double power_of_two(double n) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(n + 0x1.8p52) + 1023) << 52);
}
inline Lanes power_of_two(Lanes n) {
  return std::bit_cast<Lanes>((std::bit_cast<LaneBits>(n + 0x1.8p52) + 1023) << 52);
}

inline Lanes load_lanes(const double* p) {
  Lanes x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
// The first n < lane_count values, the others 0.
inline Lanes load_lanes(const double* p, std::int64_t n) {
  Lanes x = {};
  std::memcpy(&x, p, static_cast<std::size_t>(n) * sizeof(double));
  return x;
}
// lane_count - 1 roundings.
inline double sum_of_lanes(Lanes x) {
  double sum = x[0];
  for (int t = 1; t < lane_count; ++t) sum += x[t];
  return sum;
}

inline void store_lanes(double* p, Lanes x) { std::memcpy(p, &x, sizeof x); }

}  // namespace attest
