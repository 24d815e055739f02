// Mutations that know what a genome means: shapes move to tile edges, one value changes, two cases are spliced.
#pragma once

#include "fuzz/genome.h"
#include "properties/generate.h"

namespace attest::fuzz {

// One to four moves.
void mutate(Genome& genome, Random& random);

// What is expensive and new stays in the corpus, but most of its children are cheap again: to be called after any
// mutation.
void make_cheaper(Genome& genome, Random& random);

// Every trait of the one or of the other; patterns cut and joined.
Genome cross(const Genome& a, const Genome& b, Random& random);

}  // namespace attest::fuzz
