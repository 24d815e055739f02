// Numbers as text, with all their bits: hex floats, decimals, infinities, NaN payloads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

// Reads "0x1.8p-3", "-1.25e3", "inf", "-inf", "nan" (7fc00000), "nan:7fc00001" (fp32 bits), "nan:7ff8000000000001"
// (fp64 bits). A hex float must fit a double exactly; a decimal is rounded to nearest and must not overflow. Nothing
// else, no blanks: std::nullopt.
std::optional<double> parse_number(std::string_view text);

// The shortest of those forms that keeps every bit: hex float, "inf", or "nan:" with 8 digits where they suffice.
std::string number_text(double value);

// Equality of what stands in a file: -0 differs from 0, a NaN equals itself, payloads matter.
inline bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same_bits(x, y); });
}

}  // namespace attest
