// Cases for kernels that take few shapes, as those of a device do: head dims that they load, lengths around tiles that
// are longer than a gene, and what else they refuse put right, so that search spends its time on what they compute.
#pragma once

#include <vector>

#include "fuzz/genome.h"
#include "oracle/case.h"
#include "properties/law.h"

namespace attest::fuzz {

// A check judges no more rows of a case: edges of tiles first, then a random rest. More inputs a second matter more.
inline constexpr std::int64_t kJudgedRows = 12;

// What a kernel asks of its cases; nothing, for most.
struct Limited {
  std::vector<std::int64_t> dimensions;  // head dims that it takes; empty: any
  bool causal = false;                   // it takes causal problems only
  std::int64_t tile_q = 0, tile_k = 0;   // its own tiles, where genes cannot reach their ends by themselves
};

// Of a kernel on a device, or a picky one. Others: Limited().
Limited limits_for_search(const Kernel& kernel);

// A length: a small gene is the length itself, a large one stands for a place at the end of one of the kernel's tiles.
// tile 0: the gene is the length.
std::int64_t length_of(std::uint8_t gene, std::uint8_t most, std::int64_t tile);

// Every head dim in turn, as the genes d_qk and d_v walk; `far` reaches those beyond the genes' range.
std::int64_t dimension_of(std::uint8_t gene, bool far, const Limited& limited);

// Cuts heads, then lengths, never head dims, until a check of the forward case takes about as long as the budget allows
// (10 ns each).
void fit_limited(Case& c, double budget);

// Puts right what the kernel still refuses, after a law has shaped the case, as `attest gate` does. A valid case.
Case made_for(Case c, const Kernel& kernel, const Limited& limited);

}  // namespace attest::fuzz
