// Semantic coverage: counters that libFuzzer reads beside those of the code's edges. An input that meets a class of
// situations for the first time is kept, though it runs through no new line of code.
#pragma once

#include <cstdint>

namespace attest::fuzz {

// Each has 256 slots.
enum class Situation : std::uint8_t {
  outcome,         // law x outcome
  kernel,          // kernel, and whether the law passed on it
  tiles,           // classes of tile met, and how many
  tails,           // what is left of the last tile of queries and keys
  rises,           // how often the maximum rises in a row
  swings,          // the order of rises and falls between neighbouring blocks
  masked_rows,     // how many rows see no key, and where
  empty_splits,    // how many parts of the keys hold none
  scores,          // exponents of the largest and of the smallest score
  values,          // exponent of the largest value
  merge,           // parts (the deepest tree of their merges is one less deep), and how many of them are empty
  merge_distance,  // exponent of the largest distance between maxima
  schedule,        // of fuzz_schedule
  verdict,         // of fuzz_verdict
  count
};

// Value `slot` of a situation was met by this input; slots beyond the last mean the last.
void met(Situation situation, std::int64_t slot);

// What of a kernel's outputs an error is of: O in the accumulator's format, O rounded to fewer bits, LSE and all that
// other laws compare. They climb apart: one that is soon at its bound would hide the others.
enum class Part : std::uint8_t { o, rounded_o, other };

// The worst error/bound of a kernel under this input: steps of log2(ratio / (1 - ratio)), quarters of an octave where
// the ratio is small and ever finer towards 1, so that every gain is a reason to keep the input, and the search climbs.
void met_ratio(std::size_t kernel, Part part, double ratio);

// 0, 1, 2, 3, 4..5, 6..8, ...: few slots for any count.
std::int64_t bucket(std::int64_t count);
// -63..63 of a finite number that is not 0, else 0; plus 64.
std::int64_t exponent_slot(double x);

// What this input has met so far, for tests.
std::size_t situations_met();
void forget_situations();

}  // namespace attest::fuzz
