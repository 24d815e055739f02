#include "fuzz/counters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace attest::fuzz {
namespace {

constexpr std::size_t kSituations = static_cast<std::size_t>(Situation::count), kSlots = 256;
constexpr std::size_t kKernels = 48, kParts = 3, kSteps = 64;
constexpr double kFirstStep = -4, kStepsPerOctave = 4;  // from 2^-4 to 1 - 2^-12

// libFuzzer finds this array by the name of its section, and clears it before each input. Without libFuzzer it is
// memory like any other.
#ifdef __linux__
__attribute__((used, section("__libfuzzer_extra_counters")))
#endif
std::uint8_t counters[kSituations * kSlots + kKernels * kParts * kSteps];

}  // namespace

void met(Situation situation, std::int64_t slot) {
  const auto n = static_cast<std::size_t>(std::clamp<std::int64_t>(slot, 0, kSlots - 1));
  counters[static_cast<std::size_t>(situation) * kSlots + n] = 1;
}

void met_ratio(std::size_t kernel, Part part, double ratio) {
  if (!(ratio > 0)) return;
  const double place = std::log2(ratio) - std::log2(std::max(1 - ratio, 0x1p-20));
  const double step = std::min(kStepsPerOctave * (place - kFirstStep), kSteps - 1.0);
  if (step < 0) return;
  const std::size_t climb = kernel % kKernels * kParts + static_cast<std::size_t>(part);
  counters[kSituations * kSlots + climb * kSteps + static_cast<std::size_t>(step)] = 1;
}

std::int64_t bucket(std::int64_t n) {
  if (n < 4) return std::max<std::int64_t>(n, 0);
  return 4 + static_cast<std::int64_t>(2 * std::log2(static_cast<double>(n) / 4));
}

std::int64_t exponent_slot(double x) {
  if (x == 0 || !std::isfinite(x)) return 64;
  return 64 + std::clamp(std::ilogb(x), -63, 63);
}

std::size_t situations_met() {
  return static_cast<std::size_t>(
      std::count_if(std::begin(counters), std::end(counters), [](auto c) { return c != 0; }));
}

void forget_situations() { std::memset(counters, 0, sizeof counters); }

}  // namespace attest::fuzz
