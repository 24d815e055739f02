// Comparators of the field, each with its own idea of NaN.
#pragma once

#include <span>

#include "properties/field/field.h"

namespace attest::field {

using Numbers = std::span<const double>;

// torch.isclose for every element: equal, or |got - want| finite and <= atol + rtol |want|. NaN never passes unless
// equal_nan and both are NaN.
bool all_close(Numbers got, Numbers want, double atol, double rtol, bool equal_nan = false);

// Elements for which |got - want| > atol + rtol |want|: a NaN compares false and is not counted.
std::int64_t exceeding(Numbers got, Numbers want, double atol, double rtol);

// Largest |got - want| as torch's .abs().max() has it: NaN if there is one.
double max_error(Numbers got, Numbers want);
double mean_error(Numbers got, Numbers want);

// sum (got - want)^2 / sum got^2.
double normalised_square_error(Numbers got, Numbers want);

bool any_nan(Numbers x);
bool any_infinite(Numbers x);

// Distance from 1 to the next number of the format.
double epsilon(DType format);

// Rules that more than one project has.
Rule close_outputs(double atol, double rtol);          // O
Rule close_outputs_and_lse(double atol, double rtol);  // O and LSE

}  // namespace attest::field
