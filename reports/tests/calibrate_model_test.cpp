// The model of matrix instructions against exact arithmetic.
#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <set>

#include "reports/tool/calibrate_tables.h"

namespace attest::testing {
namespace {

using attn::Bfloat16;
using attn::bits_as;
using attn::Half;
using boost::multiprecision::cpp_int;
using cal::Accumulation;
using cal::Cut;

// The same model in unbounded integers: everything is a multiple of 2^-800, nothing is packed or shifted.

constexpr int point = 800;

cpp_int power(int e) { return cpp_int(1) << (e + point); }

// x 2^up as a multiple of 2^-800; exact.
cpp_int fixed(double x, int up) {
  int e = 0;
  const double m = std::frexp(x, &e);
  return cpp_int(static_cast<long long>(std::ldexp(m, 53))) * (cpp_int(1) << (e - 53 + up));
}

cpp_int magnitude(const cpp_int& x) { return x < 0 ? cpp_int(-x) : x; }

cpp_int rounded(const cpp_int& x, const cpp_int& unit, Cut cut) {
  const cpp_int whole = x / unit, rest = x - whole * unit;  // toward zero
  if (cut == Cut::down && rest < 0) return whole - 1;
  if (cut == Cut::to_nearest) {
    const cpp_int twice = 2 * magnitude(rest);
    if (twice > unit || (twice == unit && (whole & 1) != 0)) return whole + (rest < 0 ? -1 : 1);
  }
  return x / unit;
}

float rounded_to_float(const cpp_int& x, Cut cut) {
  if (x == 0) return 0.0f;
  const int leading = static_cast<int>(msb(magnitude(x))) - point, exponent = std::max(leading, -126);
  const double value = std::ldexp(rounded(x, power(exponent - 23), cut).convert_to<double>(), exponent - 23);
  if (value == 0) return 0.0f;
  if (std::fabs(value) >= 0x1p128) return value < 0 ? -HUGE_VALF : HUGE_VALF;
  return static_cast<float>(value);
}

int exponent_of(double x, int smallest) { return std::max(std::ilogb(x), smallest); }

template <class T>
std::uint32_t exact_step(const T* a, const T* b, int count, std::uint32_t c, const Accumulation& m) {
  const int smallest = std::is_same_v<T, Half> ? -14 : -126;
  const double start = bits_as<float>(c);
  double classes = start;
  bool zeros = start == 0;
  int top = m.lowest;
  if (start != 0) top = std::max(top, exponent_of(start, -126));
  for (int k = 0; k < count; ++k) {
    const double x = to_float(a[k]), y = to_float(b[k]);
    classes += x * y;
    zeros &= x * y == 0;
    if (x * y != 0 && std::isfinite(x * y)) top = std::max(top, exponent_of(x, smallest) + exponent_of(y, smallest));
  }
  if (std::isnan(classes)) return 0x7fffffffu;
  if (std::isinf(classes)) return bits_as<std::uint32_t>(static_cast<float>(classes));
  if (zeros) return 0;
  const cpp_int unit = power(top - m.fraction_bits);
  cpp_int sum = rounded(fixed(start, point), unit, m.align);
  for (int k = 0; k < count; ++k)
    sum += rounded(fixed(to_float(a[k]), point / 2) * fixed(to_float(b[k]), point / 2), unit, m.align);
  return bits_as<std::uint32_t>(rounded_to_float(sum * unit, m.result));
}

template <class T>
struct Dot {
  std::array<T, 64> a, b;
  std::uint32_t c;
};

template <class T>
Dot<T> dot_of(const cal::Inputs& inputs, std::uint64_t number) {
  Dot<T> d;
  for (int k = 0; k < 64; ++k) {
    d.a[static_cast<std::size_t>(k)] = cal::operand<T>(inputs, false, cal::spread(3 * number), k);
    d.b[static_cast<std::size_t>(k)] = cal::operand<T>(inputs, true, cal::spread(3 * number + 1), k);
  }
  d.c = cal::start(inputs, 3 * number + 2);
  return d;
}

template <class T>
std::uint32_t modelled(const Dot<T>& d, int count, const Accumulation& m) {
  return cal::accumulate(
      [&](int k) { return cal::product(d.a[static_cast<std::size_t>(k)], d.b[static_cast<std::size_t>(k)]); }, count,
      d.c, m);
}

template <class T>
std::uint32_t exact(const Dot<T>& d, int count, const Accumulation& m) {
  std::uint32_t c = d.c;
  for (int k = 0; k < count; k += m.terms)
    c = exact_step(d.a.data() + k, d.b.data() + k, std::min(m.terms, count - k), c, m);
  return c;
}

std::vector<Accumulation> models() {
  std::vector<Accumulation> list = {{16, 25}, {8, 24}};
  for (int terms : {4, 8, 16})
    for (int bits : {12, 22, 23, 26, 27})
      for (Cut align : {Cut::toward_zero, Cut::down, Cut::to_nearest})
        list.push_back({terms, bits, align, bits % 2 != 0 ? Cut::to_nearest : Cut::toward_zero, -10000});
  return list;
}

template <class T>
void expect_equal(std::span<const cal::Inputs> kinds, int count) {
  for (const cal::Inputs& inputs : kinds)
    for (const Accumulation& m : models())
      for (std::uint64_t n = 0; n < 60; ++n) {
        const Dot<T> d = dot_of<T>(inputs, n);
        ASSERT_EQ(modelled(d, count, m), exact(d, count, m))
            << inputs.name << " " << model_name(m) << " dot " << n << " of " << count << " products";
      }
}

TEST(Accumulation, EqualsExactArithmetic) {
  expect_equal<Half>(cal::narrow_inputs, 16);
  expect_equal<Bfloat16>(cal::wide_inputs, 16);
}
TEST(Accumulation, EqualsExactArithmeticInChains) {
  expect_equal<Half>(cal::narrow_inputs, 64);
  expect_equal<Bfloat16>(cal::wide_inputs, 64);
}

// The comparison above would see a model that is wrong.
TEST(Accumulation, OtherModelsDiffer) {
  const Accumulation right;
  for (const Accumulation& wrong :
       {Accumulation{8, 25}, Accumulation{16, 24}, Accumulation{16, 26}, Accumulation{16, 25, Cut::down},
        Accumulation{16, 25, Cut::to_nearest}, Accumulation{16, 25, Cut::toward_zero, Cut::to_nearest}}) {
    int misses = 0;
    for (std::uint64_t n = 0; n < 200; ++n) {
      const auto d = dot_of<Half>(cal::narrow_inputs[0], n);
      misses += modelled(d, 16, wrong) != exact(d, 16, right);
    }
    EXPECT_GT(misses, 5) << model_name(wrong);
  }
  // The lower limit of E shows in sums of tiny bf16 products alone.
  int misses = 0;
  for (std::uint64_t n = 0; n < 200000 && misses == 0; ++n) {
    const auto d = dot_of<Bfloat16>(cal::wide_inputs[10], n);
    misses += modelled(d, 16, {16, 25, Cut::toward_zero, Cut::toward_zero, -10000}) != modelled(d, 16, right);
  }
  EXPECT_GT(misses, 0);
}

// Worked by hand.
TEST(Accumulation, KnownSums) {
  const auto sum = [](float each, std::uint32_t c, const Accumulation& m = {}) {
    return cal::accumulate([&](int) { return cal::product(attn::to_half(each), attn::to_half(0x1p-12f)); }, 16, c, m);
  };
  EXPECT_EQ(sum(0x1p-13f, 0x3f800000u), 0x3f800004u) << "16 times 2^-25 are 4 ulps of 1";
  EXPECT_EQ(sum(0x1p-14f, 0x3f800000u), 0x3f800000u) << "2^-26 is below the grid of 1";
  EXPECT_EQ(sum(-0x1p-14f, 0x3f800000u), 0x3f800000u) << "and cut toward zero";
  EXPECT_EQ(sum(0x1p-13f, 0x3f800000u, {8, 24}), 0x3f800000u) << "one bit less";
  EXPECT_EQ(sum(0, 0x80000000u), 0u) << "zeros give +0";
  EXPECT_EQ(sum(0, 0x00000001u), 1u) << "subnormals stay";
  EXPECT_EQ(sum(0, 0xff800000u), 0xff800000u);
  EXPECT_EQ(sum(0, 0xffc00001u), 0x7fffffffu) << "every NaN is this one";
  EXPECT_EQ(sum(HUGE_VALF, 0xff800000u), 0x7fffffffu) << "inf - inf";
  const auto big = [](float x) {
    return cal::accumulate([&](int) { return cal::product(attn::to_bfloat16(x), attn::to_bfloat16(0x1p64f)); }, 16, 0u,
                           {});
  };
  EXPECT_EQ(big(0x1p59f), 0x7f000000u) << "16 times 2^123 are 2^127";
  EXPECT_EQ(big(0x1p60f), 0x7f800000u) << "2^128 is infinite";
  EXPECT_EQ(big(-0x1p60f), 0xff800000u);
}

// Every kind makes what it is there for.
TEST(Accumulation, InputsReachTheirEnds) {
  const auto count = [](const cal::Inputs& inputs, const std::function<bool(std::uint32_t)>& is) {
    int n = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) n += is(modelled(dot_of<Bfloat16>(inputs, i), 16, {}));
    return n;
  };
  const auto magnitude = [](std::uint32_t r) { return r & 0x7fffffffu; };
  std::set<std::string> names;
  for (const cal::Inputs& inputs : cal::wide_inputs) names.insert(inputs.name);
  EXPECT_EQ(names.size(), cal::wide_inputs.size());
  for (const cal::Inputs& inputs : cal::wide_inputs) {
    const std::string name = inputs.name;
    const int nan = count(inputs, [&](std::uint32_t r) { return magnitude(r) > 0x7f800000u; });
    const int infinite = count(inputs, [&](std::uint32_t r) { return magnitude(r) == 0x7f800000u; });
    const int small = count(inputs, [&](std::uint32_t r) { return magnitude(r) < 0x00800000u; });
    EXPECT_EQ(nan > 0, name == "inf and NaN") << name;
    if (name == "overflow" || name == "full range" || name == "inf and NaN") {
      EXPECT_GT(infinite, 100) << name;
    }
    if (name == "tiny" || name == "subnormal a") {
      EXPECT_GT(small, 0) << name;
    }
    if (name == "same sign" || name == "P.V") {
      EXPECT_EQ(infinite + nan, 0) << name;
    }
  }
}

}  // namespace
}  // namespace attest::testing
