#include "oracle/number.h"

#include <cmath>
#include <limits>
#include <locale>
#include <sstream>

namespace attest {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (char c : text) {
    if (hex_digit(c) < 0) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(hex_digit(c));
  }
  return value;
}

std::optional<double> parse_nan(std::string_view digits) {
  const auto bits = parse_hex(digits);
  if (!bits) return std::nullopt;
  std::uint64_t wide = *bits;
  if (digits.size() == 8) {
    wide = (*bits >> 31) << 63 | std::uint64_t{0x7ff} << 52 | (*bits & 0x7fffff) << 29;
    if ((*bits >> 23 & 0xff) != 0xff) return std::nullopt;
  } else if (digits.size() != 16) {
    return std::nullopt;
  }
  const double value = std::bit_cast<double>(wide);
  if (!std::isnan(value)) return std::nullopt;
  return value;
}

// Digits after 0x, without sign. The significand is collected in 64 bits; more than 53 of them must not be used.
std::optional<double> parse_hex_float(std::string_view s) {
  std::uint64_t significand = 0;
  std::int64_t exponent = 0;
  bool point = false, any = false;
  std::size_t i = 0;
  for (; i < s.size() && s[i] != 'p' && s[i] != 'P'; ++i) {
    if (s[i] == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    const int digit = hex_digit(s[i]);
    if (digit < 0 || significand >> 60 != 0) return std::nullopt;
    significand = significand << 4 | static_cast<std::uint64_t>(digit);
    if (point) exponent -= 4;
    any = true;
  }
  if (!any) return std::nullopt;
  if (i < s.size()) {
    ++i;
    const bool minus = i < s.size() && s[i] == '-';
    if (i < s.size() && (s[i] == '-' || s[i] == '+')) ++i;
    if (i == s.size() || s.size() - i > 6) return std::nullopt;
    std::int64_t e = 0;
    for (; i < s.size(); ++i) {
      if (!is_digit(s[i])) return std::nullopt;
      e = 10 * e + (s[i] - '0');
    }
    exponent += minus ? -e : e;
  }
  if (significand == 0) return 0.0;
  const int zeros = std::countr_zero(significand);
  significand >>= zeros;
  exponent += zeros;
  const int width = std::bit_width(significand);
  // Exactly a double: at most 53 bits, none of them below 2^-1074, the top one below 2^1024.
  if (width > 53 || exponent < -1074 || exponent + width > 1024) return std::nullopt;
  return std::ldexp(static_cast<double>(significand), static_cast<int>(exponent));
}

std::optional<double> parse_decimal(std::string_view s) {
  // The grammar first: streams accept more, and depend on the locale.
  std::size_t i = 0, digits = 0;
  while (i < s.size() && is_digit(s[i])) ++i, ++digits;
  if (i < s.size() && s[i] == '.') ++i;
  while (i < s.size() && is_digit(s[i])) ++i, ++digits;
  if (digits == 0) return std::nullopt;
  if (i < s.size()) {
    if (s[i] != 'e' && s[i] != 'E') return std::nullopt;
    ++i;
    if (i < s.size() && (s[i] == '-' || s[i] == '+')) ++i;
    if (i == s.size()) return std::nullopt;
    while (i < s.size() && is_digit(s[i])) ++i;
    if (i < s.size()) return std::nullopt;
  }
  std::istringstream in{std::string(s)};
  in.imbue(std::locale::classic());
  double value = 0;
  in >> value;
  // A value that underflows is its nearest double, 0 or subnormal; one that overflows is an error.
  if (in.fail() && !(std::abs(value) < 1)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 400) return std::nullopt;
  if (text == "nan") return parse_nan("7fc00000");
  if (text.starts_with("nan:")) return parse_nan(text.substr(4));
  const bool minus = text.front() == '-';
  if (minus || text.front() == '+') text.remove_prefix(1);
  std::optional<double> value;
  if (text == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (text.starts_with("0x") || text.starts_with("0X")) {
    value = parse_hex_float(text.substr(2));
  } else {
    value = parse_decimal(text);
  }
  if (value && minus) value = -*value;
  return value;
}

std::string number_text(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  constexpr char digits[] = "0123456789abcdef";
  const auto hex = [&](std::uint64_t x, int count) {
    std::string s;
    for (int i = count - 1; i >= 0; --i) s += digits[x >> (4 * i) & 15];
    return s;
  };
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (std::isnan(value)) {
    if (fraction & ((1u << 29) - 1)) return "nan:" + hex(bits, 16);
    return "nan:" + hex((bits >> 63) << 31 | std::uint64_t{0xff} << 23 | fraction >> 29, 8);
  }
  std::string s = bits >> 63 ? "-" : "";
  if (std::isinf(value)) return s + "inf";
  if ((bits << 1) == 0) return s + "0x0p+0";
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  std::uint64_t rest = fraction;
  if (exponent == -1023) {  // subnormal: normalise, so that one number has one text
    const int shift = 53 - std::bit_width(fraction);
    rest = (fraction << shift) & ((std::uint64_t{1} << 52) - 1);
    exponent = -1022 - shift;
  }
  s += "0x1";
  if (rest != 0) {
    std::string tail = hex(rest, 13);
    tail.erase(tail.find_last_not_of('0') + 1);
    s += '.' + tail;
  }
  return s + 'p' + (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
}

}  // namespace attest
