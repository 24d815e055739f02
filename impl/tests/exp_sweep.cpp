#include "impl/tests/exp_sweep.h"

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "impl/core/exp.h"
#include "impl/tests/support.h"

namespace attn::test {

void print(const char* what, const SweepResult& r) {
  std::printf("%s: %lld arguments, worst %.6f u at %a; below the normal range %.4f half units\n", what,
              static_cast<long long>(r.count), r.worst, r.worst_at, r.below_normal);
}

SweepResult sweep_fp32(std::uint32_t first, std::uint32_t stride) {
  SweepResult result;
  const std::uint32_t minus_zero = 0x80000000u, minus_infinity = 0xff800000u;
  for (std::uint64_t bits = minus_zero + first; bits <= minus_infinity; bits += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const double truth = std::exp(static_cast<double>(x)), got = exp_of(x);
    const double error = std::fabs(got - truth);
    ++result.count;
    if (!(truth < 0x1p-126)) {
      // Written so that a NaN counts as the worst.
      if (!(error / truth * 0x1p24 <= result.worst)) result.worst = error / truth * 0x1p24, result.worst_at = x;
    } else if (!(error * 0x1p150 <= result.below_normal)) {
      result.below_normal = error * 0x1p150;
    }
  }
  return result;
}

namespace {

// |got - exp(x)| / unit, the truth to 160 bits.
class Reference {
 public:
  Reference() {
    mpfr_init2(x_, 53);
    mpfr_init2(y_, 160);
  }
  ~Reference() {
    mpfr_clear(x_);
    mpfr_clear(y_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  void measure(double x, SweepResult& result) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    mpfr_exp(y_, x_, MPFR_RNDN);
    const double truth = mpfr_get_d(y_, MPFR_RNDN);
    mpfr_sub_d(y_, y_, exp_of(x), MPFR_RNDN);
    ++result.count;
    const long exponent = mpfr_zero_p(y_) ? 0 : mpfr_get_exp(y_);
    const double fraction = mpfr_zero_p(y_) ? 0 : mpfr_get_d(y_, MPFR_RNDN);
    if (!(truth < 0x1p-1022)) {
      const double error = std::fabs(fraction) / truth * 0x1p53;
      // Differences of tiny results underflow in fp64 themselves: scale before converting.
      if (exponent < -1000) {
        mpfr_mul_2si(y_, y_, 200, MPFR_RNDN);
        const double scaled = std::fabs(mpfr_get_d(y_, MPFR_RNDN)) / (truth * 0x1p200) * 0x1p53;
        if (!(scaled <= result.worst)) result.worst = scaled, result.worst_at = x;
      } else if (!(error <= result.worst)) {
        result.worst = error, result.worst_at = x;
      }
    } else {
      mpfr_mul_2si(y_, y_, 1075, MPFR_RNDN);
      const double error = std::fabs(mpfr_get_d(y_, MPFR_RNDN));
      if (!(error <= result.below_normal)) result.below_normal = error;
    }
  }

 private:
  mpfr_t x_, y_;
};

}  // namespace

SweepResult sweep_fp64(std::int64_t count, std::uint64_t seed) {
  SweepResult result;
  Reference reference;
  Noise noise(seed);
  for (std::int64_t t = 0; t < count; ++t) {
    reference.measure(-noise.unit() * 0.6931471805599453, result);
    reference.measure(-noise.unit() * 40, result);
    reference.measure(-noise.unit() * 746, result);
    reference.measure(-std::exp2(-60 * noise.unit()), result);
    reference.measure(noise.unit(), result);
  }
  for (int n = 0; n <= 1076; ++n)
    for (int offset = -4; offset <= 4; ++offset) {
      double edge = -(n + 0.5) * 0.6931471805599453;
      for (int t = 0; t < std::abs(offset); ++t) edge = std::nextafter(edge, offset > 0 ? INFINITY : -INFINITY);
      reference.measure(edge, result);
      reference.measure(edge + 0.34657359027997264, result);
    }
  return result;
}

}  // namespace attn::test
