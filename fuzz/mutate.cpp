#include "fuzz/mutate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fuzz/genome_case.h"

namespace attest::fuzz {
namespace {

constexpr std::size_t kTraits = static_cast<std::size_t>(Trait::pattern) + 1;

void set(Genome& g, Gene gene, std::int64_t value) {
  const GeneInfo& i = info(gene);
  g[gene] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, i.lo, i.hi));
}

bool is_period(Gene gene) { return gene >= Gene::period_0 && gene <= Gene::period_4; }

void random_gene(Genome& g, Random& random) {
  const auto gene = static_cast<Gene>(random.between(0, static_cast<std::int64_t>(kGenes) - 1));
  if (is_period(gene)) return;
  set(g, gene, random.between(info(gene).lo, info(gene).hi));
}

void nudge_gene(Genome& g, Random& random) {
  const auto gene = static_cast<Gene>(random.between(0, static_cast<std::int64_t>(kGenes) - 1));
  if (is_period(gene)) return;
  set(g, gene, g[gene] + random.between(-2, 2));
}

// Emptiness, one, both sides of the edges of tiles: where index arithmetic goes wrong.
void to_tile_edge(Genome& g, Random& random) {
  const bool keys = random.chance(0.6);
  const Gene length = keys ? Gene::tk : Gene::tq, block = keys ? Gene::block_k : Gene::block_q;
  if (g[block] == 0 || random.chance(0.3)) {
    static const std::vector<std::int64_t> blocks{1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 32};
    set(g, block, random.pick(blocks));
  }
  switch (random.between(0, 5)) {
    case 0:
      set(g, length, random.between(0, 1));
      break;
    case 1:
      set(g, block, g[length] + random.between(-1, 1));
      break;
    case 2:
      set(g, length, g[keys ? Gene::tq : Gene::tk]);
      break;
    default:
      set(g, length, g[block] * random.between(1, 4) + random.between(-1, 1));
  }
}

void key_lengths(Genome& g, Random& random) {
  set(g, Gene::kv_len, random.chance(0.8));
  const Gene gene = after(Gene::kv_len_0, static_cast<std::size_t>(random.between(0, 2)));
  const std::int64_t at = random.chance(0.5) ? g[Gene::tk] : g[Gene::block_k] * random.between(0, 3);
  set(g, gene, at + random.between(-1, 1));
}

void masks(Genome& g, Random& random) {
  const auto chosen = [&](std::initializer_list<Gene> genes) {
    return genes.begin()[random.between(0, static_cast<std::int64_t>(genes.size()) - 1)];
  };
  const Gene gene = chosen({Gene::causal, Gene::visible, Gene::additive, Gene::visible_broadcast,
                            Gene::additive_broadcast, Gene::visible_density, Gene::additive_density});
  const bool off = random.chance(0.4);
  set(g, gene, off ? info(gene).lo : random.between(info(gene).lo, info(gene).hi));
}

void tiling(Genome& g, Random& random) {
  switch (random.between(0, 4)) {
    case 0:
      set(g, Gene::block_k, random.between(0, 9));
      break;
    case 1:
      set(g, Gene::block_q, random.between(0, 9));
      break;
    case 2:
      set(g, Gene::threads, random.chance(0.5) ? 0 : random.between(62, 63));
      break;
    default:
      set(g, Gene::splits, random.between(0, random.chance(0.5) ? 4 : 20));
  }
}

void families(Genome& g, Random& random) {
  set(g, Gene::family, g[Gene::family] + random.between(-1, 1));
  if (random.chance(0.3)) set(g, Gene::family, random.between(0, 20));
  const Gene gene = after(Gene::parameter_0, static_cast<std::size_t>(random.between(0, 2)));
  if (random.chance(0.5)) set(g, gene, random.chance(0.3) ? 0 : random.between(0, 31));
  if (random.chance(0.3)) set(g, Gene::seed_low, random.between(0, 255));
}

void layouts(Genome& g, Random& random) {
  set(g, Gene::layouts, random.chance(0.7));
  set(g, after(Gene::q_layout, static_cast<std::size_t>(random.between(0, 3))), random.between(0, 255));
}

void law_or_kernel(Genome& g, Random& random) {
  set(g, random.chance(0.6) ? Gene::law : Gene::kernel, random.between(0, 255));
  if (random.chance(0.3)) set(g, Gene::shaped, random.between(0, 1));
}

// A change that keeps most of a number: what climbing to a larger error takes.
Word changed(Word w, Random& random) {
  switch (random.between(0, 6)) {
    case 0:
      return w ^ Word { 1 } << 31;
    case 1:
      return w ^ Word { 1 } << random.between(0, 30);
    case 2:  // up or down by a unit of some precision
      return w + (Word{1} << random.between(0, 25)) * (random.chance(0.5) ? 1 : ~Word{0});
    case 3:
      return w + (Word{1} << 26) * (random.chance(0.5) ? 1 : ~Word{0});
    case 4:  // few bits: exact sums, ties
      return w & ~((Word{1} << random.between(8, 26)) - 1);
    case 5: {
      constexpr Word special[] = {
          0, Word{1} << 31, Word{16} << 26, Word{31} << 26, Word{63} << 26, (Word{31} << 26) | 1};
      return special[random.between(0, 5)];
    }
    default:
      return static_cast<Word>(random.bits());
  }
}

// The patterns that stand.
std::vector<std::size_t> present(const Genome& g) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < kPatterns; ++p)
    if (!g.words[p].empty()) out.push_back(p);
  return out;
}

void one_value(Genome& g, Random& random) {
  const auto patterns = present(g);
  if (patterns.empty()) {
    // Most operations have three.
    const auto p = static_cast<std::size_t>(random.between(0, 2));
    g.set_period(p, static_cast<std::size_t>(random.between(1, 8)));
    for (Word& w : g.words[p]) w = changed(w, random);
    return;
  }
  auto& words = g.words[random.pick(patterns)];
  const auto last = static_cast<std::int64_t>(words.size()) - 1;
  Word& w = words[static_cast<std::size_t>(random.between(0, last))];
  w = random.chance(0.15) ? words[static_cast<std::size_t>(random.between(0, last))] : changed(w, random);
}

void period(Genome& g, Random& random) {
  const auto p = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(kPatterns) - 1));
  // A row of q or k, a column of keys, one number everywhere, the recipe again.
  const std::int64_t lengths[] = {0, 1, g[Gene::d_qk], g[Gene::tk], g[Gene::d_qk] * g[Gene::tk], random.between(0, 48)};
  g.set_period(p, static_cast<std::size_t>(lengths[random.between(0, 5)]));
}

void freeze_values(Genome& g, Random& random) {
  // Mutators do not know the target: q, k and v for the one, states for the others. Unused words do no harm.
  Setting setting;
  setting.op = random.chance(0.6) ? Op::forward : random.chance(0.5) ? Op::step : Op::merge;
  freeze(g, setting);
}

void number_format(Genome& g, Random& random) {
  switch (random.between(0, 4)) {
    case 0:
      set(g, Gene::stretch, random.between(1, 8));
      break;
    case 1:
      set(g, Gene::fine, random.between(0, 1));
      break;
    case 2:
      set(g, Gene::nonfinite, random.chance(0.7) ? 0 : info(Gene::nonfinite).hi);
      break;
    case 3:
      set(g, Gene::scale, random.chance(0.3) ? 0 : 17 + random.between(-6, 4));
      break;
    default:
      set(g, Gene::scale_fraction, random.between(0, 255));
  }
}

// One key, then many whose weights are just under an ulp of the sum, or just under half of one: rounding to nearest
// loses the latter whole, which is the largest error that a sum can have, and an adder that truncates the former too,
// which is more than any bound has room for.
void fading_weights(Genome& g, Random& random) {
  const bool step = random.chance(0.3);
  // Scores of a step; for the others k, along a q of ones.
  auto& scores = g.words[step ? 0 : 1];
  const int digits = random.chance(0.7) ? 23 : 52;
  g.set_period(step ? 0 : 1, 3);
  const double below = std::ldexp(1, -static_cast<int>(random.between(2, 12)));
  scores[0] = word_of(0);
  for (const std::size_t n : {1u, 2u})
    scores[n] = word_of(-(std::log(2) * static_cast<double>(digits + random.between(0, 1)) + below));
  set(g, Gene::once, 1);
  set(g, Gene::stretch, 1);
  set(g, Gene::tk, random.between(24, 64));
  set(g, Gene::tk_doublings, random.between(0, 4));
  set(g, Gene::size, random.chance(0.5) ? kMediumSize : kLargeSize);
  for (const Gene masks : {Gene::kv_len, Gene::visible, Gene::additive}) set(g, masks, 0);
  if (step) return;
  g.set_period(0, 1);
  g.words[0][0] = word_of(1);
  set(g, Gene::d_qk, 1);
  set(g, Gene::scale, 17);
  set(g, Gene::scale_fraction, 0);
  set(g, Gene::tq, random.between(1, 2));
}

// More work for the one case in a while that needs it.
void size(Genome& g, Random& random) {
  const double kind = random.unit();
  set(g, Gene::size, kind < 0.85 ? 0 : kind < 0.97 ? kMediumSize : kind < 0.995 ? kLargeSize : kLongSize);
}

void heads(Genome& g, Random& random) {
  const Gene genes[] = {Gene::batch, Gene::kv_heads, Gene::group, Gene::d_qk, Gene::d_v, Gene::parts};
  const Gene gene = genes[random.between(0, 5)];
  set(g, gene, random.chance(0.4) ? info(gene).start : random.between(info(gene).lo, info(gene).hi));
}

using Move = void (*)(Genome&, Random&);
// Some stand twice: a table of weights that can be read.
constexpr Move kMoves[] = {to_tile_edge,  to_tile_edge,  to_tile_edge,  key_lengths,   masks,      masks,
                           tiling,        tiling,        families,      families,      layouts,    law_or_kernel,
                           law_or_kernel, law_or_kernel, one_value,     one_value,     one_value,  one_value,
                           one_value,     period,        freeze_values, number_format, size,       heads,
                           heads,         random_gene,   random_gene,   nudge_gene,    nudge_gene, fading_weights};

}  // namespace

void mutate(Genome& g, Random& random) {
  // A case made of given numbers is one that a climb has come to: the next step is most often another number.
  if (!present(g).empty() && random.chance(0.4)) {
    for (std::int64_t n = random.between(1, 3); n > 0; --n)
      (random.chance(0.85) ? one_value : number_format)(g, random);
    if (random.chance(0.1)) set(g, Gene::kernel, random.between(0, 255));
    return;
  }
  const std::int64_t last = static_cast<std::int64_t>(std::size(kMoves)) - 1;
  for (std::int64_t n = random.between(1, 4); n > 0; --n) kMoves[random.between(0, last)](g, random);
}

void make_cheaper(Genome& g, Random& random) {
  const std::uint8_t size = g[Gene::size];
  if (size < kMediumSize) return;
  if (random.chance(size == kLongSize ? 0.97 : size >= kLargeSize ? 0.8 : 0.5)) g[Gene::size] = 0;
}

Genome cross(const Genome& a, const Genome& b, Random& random) {
  Genome out = a;
  bool from_b[kTraits];
  for (bool& x : from_b) x = random.chance(0.5);
  for (std::size_t n = 0; n < kGenes; ++n) {
    const auto gene = static_cast<Gene>(n);
    if (!is_period(gene) && from_b[static_cast<std::size_t>(info(gene).trait)]) out[gene] = b[gene];
  }
  for (std::size_t p = 0; p < kPatterns; ++p) {
    const auto &x = a.words[p], &y = b.words[p];
    const std::int64_t choice = random.between(0, 2);
    if (choice == 0) continue;
    const std::size_t cut =
        choice == 1
            ? 0
            : static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(std::min(x.size(), y.size()))));
    out.set_period(p, y.size());
    for (std::size_t n = 0; n < y.size(); ++n) out.words[p][n] = n < cut ? x[n] : y[n];
  }
  return out;
}

}  // namespace attest::fuzz
