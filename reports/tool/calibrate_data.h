// What was measured on a device: data alone, so that verdicts and reports can be tested without one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/cuda/calibrate/measure.h"

namespace attest {

namespace cal = attn::calibrate;

struct FunctionFacts {
  cal::Function function = cal::Function::exp2_flushed;
  cal::Sweep binades{};
  // Inputs whose exact result is a float, and on how many of them that float came: integers of exp2, powers of two.
  int exact = 0, exact_of = 0;
  std::vector<std::uint32_t> special;  // results at special_inputs
  cal::Tally total() const;
};
inline constexpr std::array<std::uint32_t, 8> special_inputs = {0x00000000, 0x80000000, 0x00000001, 0x80000001,
                                                                0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000};
inline constexpr std::array<const char*, 8> special_names = {"+0",  "-0",   "+2^-149", "-2^-149",
                                                             "1.0", "+inf", "-inf",    "NaN"};

// The log sweep again for a Contract with an absolute error, in u: what is left for the relative one.
struct LogFacts {
  double spared = 0;
  cal::Extreme relative;
};

struct Difference {
  cal::Function f, g;
  std::uint64_t count = 0;
};

struct ModelScore {
  cal::Accumulation model;
  std::uint64_t misses = 0;
};

struct ChainFacts {
  std::uint64_t dots = 0, misses = 0, nan = 0, infinite = 0, small = 0, zero = 0;
  std::string missed_kinds;
  std::vector<cal::Miss> examples;
};

// One instruction in one format.
struct InstructionFacts {
  attn::CudaFormat format = attn::CudaFormat::fp16;
  cal::Instruction instruction = cal::Instruction::mma;
  bool present = true;               // on this device, in this program
  std::uint64_t searched = 0;        // dots of the search
  std::vector<ModelScore> search;    // L x F, then other roundings: one of them should match alone
  std::vector<ModelScore> lowest;    // other lower limits of E
  int matching = 0;                  // of `search`, without a miss
  cal::Accumulation model;           // that with the fewest misses
  std::array<ChainFacts, 3> chains;  // by cal::Chain: model against instruction
  std::uint64_t misses() const { return chains[0].misses + chains[1].misses + chains[2].misses; }
};

// The worst inputs again at 200 bits: whether the fp64 reference was right.
struct ReferenceCheck {
  std::int64_t inputs = 0;
  double worst = 0;  // largest difference of an error, in u; of an error above 1 u, relative to it
  std::string where;
};

struct Calibration {
  cal::Device device;
  std::uint64_t seed = 0;
  std::int64_t dots = 0;
  double seconds = 0;
  std::vector<FunctionFacts> functions;
  std::vector<LogFacts> logs;
  std::vector<Difference> differences;
  std::uint64_t misrounded_fp16 = 0, misrounded_bf16 = 0;
  std::vector<InstructionFacts> instructions;
  ReferenceCheck reference;

  const FunctionFacts& of(cal::Function f) const;
};

// How functions, formats and instructions are named in reports.
std::string_view name(cal::Function f);
std::string_view name(attn::CudaFormat f);
std::string_view name(cal::Instruction i);

// L and F as published: MMA-Sim and Khattak and Mikaitis agree on them.
cal::Accumulation documented_accumulation(int device_major);

// Runs everything. `spared`: the distinct log_absolute of the Contracts. Before each step tells what comes. Raises
// std::runtime_error where CUDA fails.
Calibration measure(const cal::Device& device, std::uint64_t seed, std::int64_t dots, const std::vector<double>& spared,
                    const std::function<void(const std::string&)>& progress);

}  // namespace attest
