// Outputs that are wrong in a known way, at 4096 keys, under each project's rule: what the rule itself accepts,
// whatever kernel made them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "properties/field/field.h"

namespace attest::field {

enum class Damage { zeros, one_nan, dropped_key, leaked_key, scale_off, scale_off_slightly };
struct Broken {
  Damage damage;
  std::string_view name;
};
const std::vector<Broken>& broken_outputs();

// How many of the project's formats there are, and in how many of them the rule accepts the output.
struct Acceptance {
  int formats = 0, accepted = 0;
};

// In the order of broken_outputs(). The problem is four causal rows of two heads on 4096 keys, bottom-right, d = 64,
// with the project's values and scale.
std::vector<Acceptance> acceptances(const Project& project, std::uint64_t seed);

}  // namespace attest::field
