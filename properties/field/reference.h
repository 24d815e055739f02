// Plain attention, as tests of other projects write it: dense scores, softmax, weights times V, with chosen roundings.
#pragma once

#include "oracle/problem.h"
#include "properties/field/field.h"

namespace attest::field {

// q, k, v as they stand in memory, logical row-major order.
struct Inputs {
  std::vector<double> q, k, v;
  bool operator==(const Inputs&) const = default;
};
Inputs read_inputs(const Problem& problem);

// A difference between what is asked for and what is computed; the default is none. For broken outputs.
struct Change {
  double scale = 1;           // factor on the scale
  std::int64_t dropped = -1;  // key that is left out
  std::int64_t leaked = -1;   // key that every row sees
};

// O and LSE of the problem's shape and masks with these inputs. Rows without visible keys: O = 0, LSE = -inf.
// magnitude, if given, receives the sum of p |v| per element of O.
Outputs attend(const Problem& problem, const Inputs& inputs, const Arithmetic& arithmetic, const Change& change = {},
               std::vector<double>* magnitude = nullptr);

// Everything that the project's rule may look at.
Reference reference_for(const Project& project, const Problem& problem, const Inputs& inputs);

}  // namespace attest::field
