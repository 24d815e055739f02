// The values that projects draw, reproducible everywhere (Philox).
#pragma once

#include "properties/field/field.h"

namespace attest::field {

Fill normal(double sigma = 1, double q_factor = 1);  // N(0, sigma^2), q times q_factor
Fill uniform(double low, double high);               // [low, high)
Fill integers(int q_most, int kv_most);              // whole numbers, -most to most inclusive
// Whole numbers in [-most, most], and with probability `zeros` a 0.
Fill sparse_integers(double zeros, int most);
// q = 1, k = level / d and, for key 0, (level + 1024) / d: raw scores about `level`; V ~ N(0, 1).
Fill level_scores(double level);
// q = 8 / d, k = -8 in the first half of the keys and 64 in the second; V ~ N(0, 1).
Fill rising_keys();
Fill constant(double q, double k, double v);

}  // namespace attest::field
