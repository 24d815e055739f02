// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC 2011), and numbers made from it. Everything is constexpr: integer arithmetic and IEEE + - * / in a fixed
// order, no libm, so that the bits are the same under every compiler that does not contract (-ffp-contract=off).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace attest {

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;  // Weyl sequence: golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

// 2^e, any e that a double holds (subnormals included).
constexpr double power_of_two(int e) {
  if (e < -1022) return std::bit_cast<double>(std::uint64_t{1} << (e + 1074));
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}

// Square root by Newton's iteration: within an ulp, and the same everywhere. x finite and > 0, normal.
constexpr double newton_sqrt(double x) {
  double y = std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) >> 1) + (std::uint64_t{1023} << 51));
  for (int i = 0; i < 5; ++i) y = 0.5 * (y + x / y);
  return y;
}

// Natural logarithm within a few ulps: x = 2^e f with f in [sqrt(1/2), sqrt(2)), log f = 2 artanh((f-1)/(f+1)).
// x finite and > 0, normal.
constexpr double ieee_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double f = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | std::uint64_t{1023} << 52);
  if (f > 0x1.6a09e667f3bcdp0) {
    f *= 0.5;
    e += 1;
  }
  const double s = (f - 1.0) / (f + 1.0), t = s * s;
  double sum = 0;  // s^2 <= 0.0295: the terms fall below 2^-53 at s^22
  for (int n = 21; n >= 1; n -= 2) sum = sum * t + 1.0 / n;
  return 2.0 * (s * sum) + e * 0x1.62e42fefa39efp-1;
}

// Quantile of the standard normal distribution, relative error about 1e-15: algorithm AS 241, PPND16 (Wichura, Applied
// Statistics 37, 1988). 0 < p < 1.
constexpr double inverse_normal(double p) {
  constexpr double A[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                          1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                          3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double B[] = {1.0,
                          4.2313330701600911252e+1,
                          6.8718700749205790830e+2,
                          5.3941960214247511077e+3,
                          2.1213794301586595867e+4,
                          3.9307895800092710610e+4,
                          2.8729085735721942674e+4,
                          5.2264952788528545610e+3};
  constexpr double C[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                          3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double D[] = {1.0,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr double E[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double F[] = {1.0,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  const auto ratio = [](const double(&top)[8], const double(&bottom)[8], double x) {
    double n = top[7], d = bottom[7];
    for (int i = 6; i >= 0; --i) {
      n = n * x + top[i];
      d = d * x + bottom[i];
    }
    return n / d;
  };
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) return q * ratio(A, B, 0.180625 - q * q);
  const double tail = q < 0 ? p : 1.0 - p;
  const double r = newton_sqrt(-ieee_log(tail));
  const double z = r <= 5.0 ? ratio(C, D, r - 1.6) : ratio(E, F, r - 5.0);
  return q < 0 ? -z : z;
}

// An endless random-access sequence: (seed, stream, index) gives the number. Streams with different ids are
// independent, so one tensor's extent has no influence on another's values.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  constexpr std::uint64_t bits(std::uint64_t index) {
    if (!filled_ || index >> 1 != block_index_) {
      block_index_ = index >> 1;
      filled_ = true;
      block_ = philox4x32_10({lower(block_index_), upper(block_index_), lower(stream_), upper(stream_)},
                             {lower(seed_), upper(seed_)});
    }
    const std::size_t half = 2 * (index & 1);
    return block_[half] | std::uint64_t{block_[half + 1]} << 32;
  }
  // Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform(std::uint64_t index) { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }
  // Uniform in (0, 1), an odd multiple of 2^-53: symmetric about 1/2 and never an end point.
  constexpr double uniform_open(std::uint64_t index) {
    return static_cast<double>((bits(index) >> 12) * 2 + 1) * 0x1p-53;
  }
  // Standard normal; |z| <= 8.21.
  constexpr double normal(std::uint64_t index) { return inverse_normal(uniform_open(index)); }

 private:
  static constexpr std::uint32_t lower(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static constexpr std::uint32_t upper(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
  std::uint64_t seed_, stream_, block_index_ = 0;
  bool filled_ = false;
  PhiloxBlock block_{};
};

// FNV-1a, 64 bits: names and golden hashes, not security.
constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325u;
constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint8_t byte) { return (hash ^ byte) * 0x100000001b3u; }
constexpr std::uint64_t fnv1a_word(std::uint64_t hash, std::uint64_t word) {
  for (int i = 0; i < 8; ++i) hash = fnv1a(hash, static_cast<std::uint8_t>(word >> (8 * i)));
  return hash;
}

}  // namespace attest
