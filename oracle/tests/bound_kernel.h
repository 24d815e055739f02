// What the tests of bounds simulate: a Contract, formats, tiling, and roundings to any format.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "oracle/bound.h"

namespace attest::bound_test {

// ilogb of a normal double.
inline int exponent_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 52 & 0x7ff) - 1023;
}

// Round to nearest even with gradual underflow and overflow to infinity. Adding and taking away 1.5 * 2^52 units of the
// format's last place does it; a detour over float does not: GCC 12 drops double -> float -> double from two lanes that
// it builds a vector of (-O2, tree-slp-vectorize).
inline double round_to(DType format, double x) {
  if (format == DType::fp64 || x == 0 || !std::isfinite(x)) return x;
  const int precision = format == DType::fp32 ? 24 : format == DType::fp16 ? 11 : 8;
  const int min_exponent = format == DType::fp16 ? -14 : -126;
  const double max = format == DType::fp32 ? 0x1.fffffep127 : format == DType::fp16 ? 65504.0 : 0x1.fep127;
  const double magic = std::ldexp(1.5, std::max(exponent_of(x), min_exponent) - (precision - 1) + 52);
  const double r = (x + magic) - magic;
  return std::fabs(r) > max ? std::copysign(HUGE_VAL, x) : r;
}

// Where in their range errors of exp, log and division fall.
enum class Errors { none, random, extreme, low, high };

struct SimulatedKernel {
  std::string name;
  attn_contract contract{};
  DType in = DType::fp32, out = DType::fp32;
  std::int64_t block_k = 16, splits = 1, keys_per_split = 0;
  bool tell_cuts = true;   // whether the bound is told where splits begin
  bool lanes = false;      // sums in eight lanes, for ATTN_SUM_ANY
  bool two_exps = false;   // FA1 that weighs each block by its own maximum
  bool continues = false;  // FA1 that multiplies O by l and goes on adding to it
  KeyPlan plan(std::int64_t tk) const {
    KeyPlan p;
    p.tk = tk;
    p.block_k = contract.algorithm == ATTN_ALG_STANDARD ? std::max<std::int64_t>(1, tk) : block_k;
    p.splits = splits;
    p.keys_per_split = splits == 1 ? tk : tell_cuts ? keys_per_split : 0;
    return p;
  }
};

struct Output {
  std::vector<double> o;
  double lse = 0;
};

inline double half_range(double eps_in_u) { return std::max(0.0, eps_in_u - 1.0) * (1 - 1e-6); }

}  // namespace attest::bound_test
