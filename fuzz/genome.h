// A fuzz input as a genome: small integers, one byte each, and value patterns. Any bytes decode to a genome, and every
// genome has one canonical text of bytes, so that mutators can work on meaning and libFuzzer on bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace attest::fuzz {

// The order is the format of corpus/fuzz. A gene more is appended, and a zero byte put into the stored inputs there:
// what follows the genes is words.
enum class Gene : std::uint8_t {
  // What is checked: indices into the target's lists, modulo their lengths.
  kernel,
  law,
  shaped,  // 1: the case is given what the law speaks about
  size,    // how much work the shape may ask for
  tq,
  tk,
  d_qk,
  d_v,
  batch,
  kv_heads,
  group,
  parts,
  state_kind,
  block_q,
  block_k,
  splits,
  threads,  // mostly one: starting threads costs more than a small problem does
  causal,
  kv_len,  // 1: the lengths that follow bind
  kv_len_0,
  kv_len_1,
  kv_len_2,
  visible,
  visible_seed,
  visible_density,
  visible_broadcast,  // bit 0: a broadcast shape; the others: axes of extent 1
  additive,
  additive_seed,
  additive_density,
  additive_broadcast,
  family,
  seed_low,
  seed_high,
  parameter_0,  // 0: the default; else a walk along the parameter's range
  parameter_1,
  parameter_2,
  state_parameter,
  out,
  scale,  // 0: the default; else a power of two times 1 + scale_fraction / 256
  scale_fraction,
  layouts,  // 1: the layouts that follow hold
  q_layout,
  k_layout,
  v_layout,
  o_layout,
  stretch,    // multiplies the exponents of words
  fine,       // 1: words are continued below their 27 bits, for fp64
  nonfinite,  // the last value: words may be inf and NaN. Rare: it silences most laws
  period_0,   // words of each pattern; 0: the tensor comes from the family
  period_1,
  period_2,
  period_3,
  period_4,
  once,          // the first words of a pattern that are not repeated with the others
  tk_doublings,  // rows of keys longer than a gene holds
  count
};
inline constexpr std::size_t kGenes = static_cast<std::size_t>(Gene::count);
constexpr Gene after(Gene first, std::size_t n) { return static_cast<Gene>(static_cast<std::size_t>(first) + n); }

// From these values of Gene::size on, a case may ask for more work; the last: more than 2^16 elements in k or v.
inline constexpr std::uint8_t kMediumSize = 224, kLargeSize = 250, kLongSize = 255;

// What mutators take for one thing.
enum class Trait : std::uint8_t { check, shape, tiling, mask, values, options, layout, pattern };

struct GeneInfo {
  Trait trait;
  std::uint8_t lo, hi;  // inclusive
  std::uint8_t start;   // what byte 0, and so input that has ended, means
};
const GeneInfo& info(Gene gene);

inline constexpr std::size_t kPatterns = 5;

// A number of a pattern: sign, 5 bits of exponent, 26 bits of fraction.
using Word = std::uint32_t;

struct Genome {
  Genome();  // what no bytes at all decode to

  std::array<std::uint8_t, kGenes> genes;
  // Laid over a tensor again and again, but for the first ones where Gene::once says so: value patterns, not noise, are
  // what kernels trip over, and a short period keeps the search space small. As long as the period genes say.
  std::array<std::vector<Word>, kPatterns> words;

  std::uint8_t& operator[](Gene gene) { return genes[static_cast<std::size_t>(gene)]; }
  std::uint8_t operator[](Gene gene) const { return genes[static_cast<std::size_t>(gene)]; }
  bool operator==(const Genome&) const = default;

  // Sets a period and the words with it; new words repeat the old ones.
  void set_period(std::size_t pattern, std::size_t period);
};

// Total: every byte string is a genome.
Genome decode(std::span<const std::uint8_t> bytes);
// Canonical: decode(encode(g)) == g, and the shortest bytes that do so.
std::vector<std::uint8_t> encode(const Genome& genome);

// The number that a word stands for; nonfinite: the largest exponent means inf and NaN.
double number(Word word, int stretch, bool fine, bool nonfinite);
// The word nearest to a finite number at stretch 1; beyond the range, the end of it.
Word word_of(double x);

}  // namespace attest::fuzz
