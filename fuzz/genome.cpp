#include "fuzz/genome.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fuzz/bytes.h"

namespace attest::fuzz {
namespace {

constexpr std::uint8_t kMostWords = 48;  // enough for the worst cases that hunts have found
constexpr int kExponentZero = 16;        // the exponent field of 1.0
constexpr int kFractionBits = 26;

// One line a gene, in the order of the enumeration. Starts make the shortest input a case with rows and keys to check.
constexpr std::array<GeneInfo, kGenes> kInfo = {{
    {Trait::check, 0, 255, 0},           // kernel
    {Trait::check, 0, 255, 0},           // law
    {Trait::check, 0, 1, 0},             // shaped
    {Trait::shape, 0, 255, 0},           // size
    {Trait::shape, 0, 40, 3},            // tq
    {Trait::shape, 0, 64, 5},            // tk
    {Trait::shape, 1, 24, 2},            // d_qk
    {Trait::shape, 1, 24, 2},            // d_v
    {Trait::shape, 1, 3, 1},             // batch
    {Trait::shape, 1, 3, 1},             // kv_heads
    {Trait::shape, 1, 4, 1},             // group
    {Trait::shape, 1, 9, 2},             // parts
    {Trait::shape, 0, 2, 0},             // state_kind
    {Trait::tiling, 0, 48, 0},           // block_q
    {Trait::tiling, 0, 48, 0},           // block_k
    {Trait::tiling, 0, 20, 0},           // splits
    {Trait::tiling, 0, 63, 0},           // threads
    {Trait::mask, 0, 2, 0},              // causal
    {Trait::mask, 0, 1, 0},              // kv_len
    {Trait::mask, 0, 64, 0},             // kv_len_0
    {Trait::mask, 0, 64, 3},             // kv_len_1
    {Trait::mask, 0, 64, 5},             // kv_len_2
    {Trait::mask, 0, 8, 0},              // visible
    {Trait::mask, 0, 255, 0},            // visible_seed
    {Trait::mask, 0, 255, 128},          // visible_density
    {Trait::mask, 0, 31, 0},             // visible_broadcast
    {Trait::mask, 0, 8, 0},              // additive
    {Trait::mask, 0, 255, 0},            // additive_seed
    {Trait::mask, 0, 255, 128},          // additive_density
    {Trait::mask, 0, 31, 0},             // additive_broadcast
    {Trait::values, 0, 255, 0},          // family
    {Trait::values, 0, 255, 0},          // seed_low
    {Trait::values, 0, 255, 0},          // seed_high
    {Trait::values, 0, 31, 0},           // parameter_0
    {Trait::values, 0, 31, 0},           // parameter_1
    {Trait::values, 0, 31, 0},           // parameter_2
    {Trait::values, 0, 2, 2},            // state_parameter
    {Trait::options, 0, 1, 0},           // out
    {Trait::options, 0, 33, 0},          // scale
    {Trait::options, 0, 255, 0},         // scale_fraction
    {Trait::layout, 0, 1, 0},            // layouts
    {Trait::layout, 0, 255, 0},          // q_layout
    {Trait::layout, 0, 255, 0},          // k_layout
    {Trait::layout, 0, 255, 0},          // v_layout
    {Trait::layout, 0, 255, 0},          // o_layout
    {Trait::pattern, 1, 8, 1},           // stretch
    {Trait::pattern, 0, 1, 0},           // fine
    {Trait::pattern, 0, 15, 0},          // nonfinite
    {Trait::pattern, 0, kMostWords, 0},  // period_0
    {Trait::pattern, 0, kMostWords, 0},  // period_1
    {Trait::pattern, 0, kMostWords, 0},  // period_2
    {Trait::pattern, 0, kMostWords, 0},  // period_3
    {Trait::pattern, 0, kMostWords, 0},  // period_4
    {Trait::pattern, 0, 3, 0},           // once
    {Trait::shape, 0, 4, 0},             // tk_doublings
}};

Word read_word(Bytes& bytes) {
  const Word low = bytes.word();
  return low | static_cast<Word>(bytes.word()) << 16;
}

}  // namespace

const GeneInfo& info(Gene gene) { return kInfo[static_cast<std::size_t>(gene)]; }

Genome::Genome() {
  for (std::size_t n = 0; n < kGenes; ++n) genes[n] = kInfo[n].start;
}

void Genome::set_period(std::size_t pattern, std::size_t period) {
  std::vector<Word>& w = words[pattern];
  const std::size_t before = w.size();
  period = std::min<std::size_t>(period, kMostWords);
  w.resize(period);
  for (std::size_t n = before; n < period; ++n) w[n] = before ? w[n % before] : Word{kExponentZero} << kFractionBits;
  (*this)[after(Gene::period_0, pattern)] = static_cast<std::uint8_t>(period);
}

Genome decode(std::span<const std::uint8_t> data) {
  Bytes bytes(data);
  Genome g;
  for (std::size_t n = 0; n < kGenes; ++n)
    g.genes[n] = static_cast<std::uint8_t>(bytes.between(kInfo[n].lo, kInfo[n].hi, kInfo[n].start));
  for (std::size_t p = 0; p < kPatterns; ++p) {
    g.words[p].resize(g[after(Gene::period_0, p)]);
    for (Word& w : g.words[p]) w = read_word(bytes);
  }
  return g;
}

std::vector<std::uint8_t> encode(const Genome& g) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kGenes + 64);
  for (std::size_t n = 0; n < kGenes; ++n) {
    const int range = kInfo[n].hi - kInfo[n].lo + 1;
    bytes.push_back(static_cast<std::uint8_t>((g.genes[n] - kInfo[n].start + range) % range));
  }
  for (const auto& pattern : g.words)
    for (const Word w : pattern)
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(w >> shift));
  while (!bytes.empty() && bytes.back() == 0) bytes.pop_back();  // input that has ended reads as zeros
  return bytes;
}

double number(Word word, int stretch, bool fine, bool nonfinite) {
  const double sign = word >> 31 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(word >> kFractionBits & 31);
  const Word fraction = word & ((Word{1} << kFractionBits) - 1);
  if (exponent == 31 && nonfinite)
    return fraction & 1 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0 && fraction == 0) return sign * 0.0;
  double significand = 1 + std::ldexp(fraction, -kFractionBits);
  // Any 26 bits will do, as long as neighbours differ.
  if (fine) significand += std::ldexp(word * Word{2654435769} >> 6, -2 * kFractionBits);
  return sign * std::ldexp(significand, (exponent - kExponentZero) * stretch);
}

Word word_of(double x) {
  const Word sign = std::signbit(x) ? Word{1} << 31 : 0;
  int exponent = 0;
  const double half = std::frexp(std::fabs(x), &exponent);  // in [1/2, 1)
  if (!(half > 0)) return sign;
  int field = exponent - 1 + kExponentZero;
  auto fraction = static_cast<std::int64_t>(std::llround(std::ldexp(2 * half - 1, kFractionBits)));
  if (fraction >> kFractionBits) ++field, fraction = 0;
  if (field < 0) return sign;
  if (field == 0 && fraction == 0) fraction = 1;  // that word is zero
  if (field > 31) field = 31, fraction = (std::int64_t{1} << kFractionBits) - 1;
  return sign | static_cast<Word>(field) << kFractionBits | static_cast<Word>(fraction);
}

}  // namespace attest::fuzz
