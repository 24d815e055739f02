// Small changes of a case with literal values. Each move tells whether it had something to change.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/generate.h"

namespace attest::hunting {

// A small case to climb from: one head, few keys, a family of values drawn from the whole list.
Case start_case(const Kernel& kernel, Random& random, OutDType out);

// The same numbers as literals, rounded to the kernel's formats, whatever they came from.
Case frozen(const Kernel& kernel, const Case& c);

// One to three random moves: values by ulps, by any share of themselves, by powers of two, signs, copies; keys, rows
// and columns copied and dropped; scale; tiling; mask.
void move(Case& c, const Kernel& kernel, Random& random);

// The scale at which the weight of a random key lands beside a tie of the format that P is rounded to.
bool weight_beside_tie(Case& c, const Kernel& kernel, std::int64_t i, Random& random);

// The same case with one column of V for every key, 1 at its own key: O is then P, and the error of O that of P.
Case weights_case(const Case& c);

// What weights_case(c) shows in row i of its first head: error of each key's weight, and that error over its bound.
// Empty if the kernel does not run it.
struct WeightErrors {
  std::vector<double> error, ratio;
};
WeightErrors weight_errors(const Kernel& kernel, const Case& weights, std::int64_t i);

// Gives V of column e the sign of each key's weight error, and perhaps 0 where that error is a small part of its bound:
// errors then add up, and what adds to the bound alone goes away.
void align_values(Case& c, const WeightErrors& errors, std::int64_t e, Random& random);

}  // namespace attest::hunting
