// Shapes that find bugs: emptiness, one, both sides of every tile edge, primes. Small enough for a cheap truth.
#pragma once

#include <vector>

#include "properties/generate.h"

namespace attest {

// Multiply-adds of the definition: what truth, bound and kernel cost is proportional to it.
double work_of(const Case& c);

// A sequence length around the given tile: 0, 1, tile -1/0/+1, 2 tile -1/0/+1, primes, anything up to most.
std::int64_t random_length(Random& random, std::int64_t tile, std::int64_t most);

// A head dimension: odd ones and multiples of 8.
std::int64_t random_dimension(Random& random, std::int64_t most);

Shape random_shape(Random& random, Op op, std::int64_t tile_q, std::int64_t tile_k, double size);

// A decoding shape with more than 2^16 elements in k or v: 16-bit offsets end there. Costs about 2 ms.
Shape long_shape(Random& random);

// Cuts dimensions (unless they are to be kept), heads and batch, then sequences, until work_of(c) <= budget. Keeps tile
// edges as long as it can.
void fit_to(Case& c, Random& random, double budget, bool keep_dimensions = false);

// Makes fields that depend on the shape agree with it: kv_len, groups.
void agree(Case& c, Random& random);

// The same case with another shape: literal tensors and masks are cut to it. No axis may grow.
Case with_shape(const Case& c, const Shape& shape);

// Logical shape of an input tensor of the case ("q", "scores", ...); empty if there is none of that name.
std::vector<std::int64_t> logical_shape(const Case& c, const std::string& tensor);

}  // namespace attest
