// The door between what `attest calibrate` prints and the device: exhaustive sweeps of special functions, and matrix
// instructions beside the model of their accumulation. A build without CUDA answers from absent.cpp.
// Everything here works on the current device and waits for it. A function that returns false says in `why` what
// failed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/cuda/calibrate/accumulation.h"
#include "impl/cuda/calibrate/inputs.h"
#include "impl/cuda/functions.h"

namespace attn::calibrate {

struct Device {
  std::string name, driver;  // the driver's own version; "" where it does not say
  int major = 0, minor = 0, multiprocessors = 0;
  int driver_cuda = 0, runtime_cuda = 0;  // 13000 for CUDA 13.0
  int code = 0;                           // of this program on this device: 90 for sm_90
  std::string compiler;
};
bool describe(Device& device, std::string& why);

// What the kernels compute with, and what they could.
enum class Function {
  exp2_flushed,        // ex2.approx.ftz.f32
  exp2_approx,         // ex2.approx.f32
  exp2_gradual,        // exp2f
  exp,                 // expf
  exp_shared,          // exp_of of impl/core/exp.h
  log,                 // logf
  log2_approx,         // lg2.approx.f32
  reciprocal,          // __frcp_rn
  division,            // 1.0f / x
  reciprocal_approx,   // rcp.approx.f32
  reciprocal_flushed,  // rcp.approx.ftz.f32
};
inline constexpr std::array<Function, 11> functions = {Function::exp2_flushed,      Function::exp2_approx,
                                                       Function::exp2_gradual,      Function::exp,
                                                       Function::exp_shared,        Function::log,
                                                       Function::log2_approx,       Function::reciprocal,
                                                       Function::division,          Function::reciprocal_approx,
                                                       Function::reciprocal_flushed};

// The largest of something, with the input where it was and what the function gave there. size is never negative.
struct Extreme {
  double size = 0;
  std::uint32_t input = 0, output = 0;
};

// What came of inputs x. y is the function's result, R the reference (fp64, below 2 of its ulps off), u = 2^-24.
// Errors are of results whose R is in the normal range of fp32 and does not round to an infinity.
struct Tally {
  Extreme above, below;         // (y - R) / R, each sign, in u
  Extreme beyond_absolute;      // |y - R| / |R| where |y - R| is above a given absolute error, in u
  Extreme absolute;             // |y - R|, in u
  Extreme ulps;                 // |y - R| in ulps of R's binade
  Extreme distance;             // ulps from the correctly rounded R, a whole number
  double sum = 0, squares = 0;  // of (y - R) / R in u: mean and root mean square
  std::uint64_t results = 0;
  std::uint64_t unrounded = 0;     // y is not the correctly rounded R
  std::uint64_t doubtful = 0;      // R is within 2 of its ulps of a rounding boundary: unrounded is exact to so many
  std::uint64_t undocumented = 0;  // beyond the documented error
  // 0 < |R| < 2^-126.
  std::uint64_t small = 0, small_to_zero = 0, small_unrounded = 0;
  std::uint64_t overflows = 0;  // R rounds to an infinity
  // NaN, zero or infinity where R is none, or the reverse.
  std::uint64_t misclassified = 0;
  std::uint64_t disordered = 0;  // f(x) and f(the next float) are out of order
};
ATTN_HOST_DEVICE constexpr void keep_larger(Extreme& a, const Extreme& b) {
  if (b.size > a.size) a = b;
}
ATTN_HOST_DEVICE constexpr void add(Tally& a, const Tally& b) {
  keep_larger(a.above, b.above), keep_larger(a.below, b.below), keep_larger(a.beyond_absolute, b.beyond_absolute);
  keep_larger(a.absolute, b.absolute), keep_larger(a.ulps, b.ulps), keep_larger(a.distance, b.distance);
  a.sum += b.sum, a.squares += b.squares;
  a.results += b.results, a.unrounded += b.unrounded, a.doubtful += b.doubtful, a.undocumented += b.undocumented;
  a.small += b.small, a.small_to_zero += b.small_to_zero, a.small_unrounded += b.small_unrounded;
  a.overflows += b.overflows, a.misclassified += b.misclassified, a.disordered += b.disordered;
}

// All 2^32 inputs by their upper 9 bits, sign and exponent: binades[127] is [1, 2), binades[256 + 127] is (-2, -1].
using Sweep = std::array<Tally, 512>;
// spared: the absolute error of Tally::beyond_absolute, in u.
bool sweep(Function f, double spared, Sweep& result, std::string& why);

// f at chosen inputs.
bool evaluate(Function f, std::span<const std::uint32_t> inputs, std::span<std::uint32_t> outputs, std::string& why);
// Inputs, of 2^32, on which two functions give different bits; NaN equals NaN.
bool count_differences(Function f, Function g, std::uint64_t& count, std::string& why);
// Inputs, of 2^32 in each lane of the packed conversion by which P is rounded, whose result is not the nearest even
// one.
bool count_misrounded(CudaFormat format, std::uint64_t& count, std::string& why);

enum class Instruction {
  mma,           // mma.sync.m16n8k16
  wgmma_8,       // wgmma.m64n8k16, both operands in shared memory
  wgmma_8_reg,   // the same with a in registers
  wgmma_64,      // wgmma.m64n64k16
  wgmma_64_reg,  // the same with a in registers
};
inline constexpr std::array<Instruction, 5> instructions = {
    Instruction::mma, Instruction::wgmma_8, Instruction::wgmma_8_reg, Instruction::wgmma_64, Instruction::wgmma_64_reg};
// Products of one instruction.
inline constexpr int depth = 16;
// Whether the device has it and this program the code for it.
bool has(Instruction instruction);
inline std::span<const Inputs> inputs_of(CudaFormat format) {
  if (format == CudaFormat::bf16) return wide_inputs;
  return narrow_inputs;
}

inline constexpr int most_models = 32, most_steps = 4;
enum class Chain { one, four, four_from_zero };  // instructions in a row; from zero: the first ignores c (scale-d = 0)

struct Comparison {
  CudaFormat format = CudaFormat::fp16;  // or bf16
  Instruction instruction = Instruction::mma;
  Chain chain = Chain::one;
  std::uint64_t seed = 0;
  std::int64_t dots = 0;  // at least so many: whole tiles
};
// A dot product that the first model misses.
struct Miss {
  std::uint32_t got = 0, want = 0, start = 0;
  int count = 0;
  std::uint16_t a[depth * most_steps] = {}, b[depth * most_steps] = {};
};
struct Matches {
  std::uint64_t dots = 0;
  std::uint64_t nan = 0, infinite = 0, small = 0, zero = 0;  // of the instruction's results; small: subnormal
  std::array<std::uint64_t, most_models> misses{};           // by model
  std::vector<Miss> examples;                                // of the first model
};
bool compare(const Comparison& what, const Inputs& inputs, std::span<const Accumulation> models, Matches& result,
             std::string& why);

}  // namespace attn::calibrate
