#include "oracle/case_fields.h"

#include <charconv>
#include <cmath>
#include <set>

namespace attest {

void Field::wrong_type(std::string_view wanted) const {
  fail("is of type " + std::string(value_.type_name()) + "; give " + std::string(wanted));
}

std::string Field::text() const {
  if (!value_.is_string()) wrong_type("a string");
  return value_.get<std::string>();
}

bool Field::boolean() const {
  if (!value_.is_boolean()) wrong_type("true or false");
  return value_.get<bool>();
}

std::int64_t Field::integer(std::int64_t lo, std::int64_t hi) const {
  if (!value_.is_number_integer()) wrong_type("an integer");
  const bool fits = !value_.is_number_unsigned() || value_.get<std::uint64_t>() <= INT64_MAX;
  const std::int64_t x = fits ? value_.get<std::int64_t>() : INT64_MAX;
  if (!fits || x < lo || x > hi)
    fail(value_.dump() + " is out of range; use " + std::to_string(lo) + " to " + std::to_string(hi));
  return x;
}

std::uint64_t Field::seed() const {
  if (value_.is_number_unsigned()) return value_.get<std::uint64_t>();
  if (!value_.is_string()) wrong_type("a whole number below 2^64, as a string of digits");
  const std::string s = value_.get<std::string>();
  std::uint64_t x = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x);
  if (error != std::errc() || end != s.data() + s.size())
    fail(std::string("'") + printable(s) + "' is no whole number below 2^64; give decimal digits");
  return x;
}

double Field::number() const {
  if (value_.is_number()) {
    if (value_.is_number_float()) return value_.get<double>();
    const double x = value_.get<double>();
    // An integer must be exact: 2^53 + 1 written as a plain number would silently change.
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    const bool fits =
        value_.is_number_unsigned() ? value_.get<std::uint64_t>() <= exact : value_.get<std::int64_t>() >= -exact;
    if (!fits) fail(value_.dump() + " may not be exact as a double; write it as a hex float string");
    return x;
  }
  if (!value_.is_string()) wrong_type("a number, or a string such as \"0x1.8p-3\", \"-inf\" or \"nan:7fc00001\"");
  const std::string s = value_.get<std::string>();
  const auto x = parse_number(s);
  if (!x)
    fail(std::string("'") + printable(s, 40) +
         "' is no number that a double holds; write e.g. 0x1.8p-3, 0.25, -inf, nan:7fc00001");
  return *x;
}

const nlohmann::json& Field::array() const {
  if (!value_.is_array()) wrong_type("an array [ ... ]");
  return value_;
}

Field Field::at(std::size_t index) const {
  return Field(array()[index], path_ + "[" + std::to_string(index) + "]", origin_);
}

std::vector<double> Field::numbers() const {
  std::vector<double> xs;
  xs.reserve(array().size());
  for (std::size_t i = 0; i < array().size(); ++i) xs.push_back(at(i).number());
  return xs;
}

std::vector<std::int64_t> Field::integers(std::int64_t lo, std::int64_t hi) const {
  std::vector<std::int64_t> xs;
  for (std::size_t i = 0; i < array().size(); ++i) xs.push_back(at(i).integer(lo, hi));
  return xs;
}

std::vector<std::string> Field::texts() const {
  std::vector<std::string> xs;
  for (std::size_t i = 0; i < array().size(); ++i) xs.push_back(at(i).text());
  return xs;
}

namespace {

// Line and column of a byte, both from 1.
std::string place(const std::string& text, std::size_t byte) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < byte && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    if (text[i] == '\n') ++line;
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Index of the first byte that is not part of well-formed UTF-8 (RFC 3629), or npos.
std::size_t find_bad_utf8(const std::string& s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  for (std::size_t i = 0; i < s.size();) {
    const unsigned lead = byte(i);
    const int more = lead < 0x80                   ? 0
                     : lead >= 0xc2 && lead < 0xe0 ? 1
                     : lead >= 0xe0 && lead < 0xf0 ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : -1;
    if (more < 0) return i;
    // Second bytes that would be overlong, surrogates, or beyond U+10FFFF.
    const unsigned second = byte(i + 1);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
      return i;
    for (int n = 1; n <= more; ++n)
      if ((byte(i + static_cast<std::size_t>(n)) & 0xc0) != 0x80) return i;
    i += static_cast<std::size_t>(more) + 1;
  }
  return std::string::npos;
}

// Watches the events of nlohmann's parser; nothing is built, so deep or repeated structure costs nothing.
class Strict : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string field, reason;
  std::size_t byte = 0;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return stop("binary values do not exist in JSON"); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    keys_.back().second = name;
    if (keys_.back().first.insert(name).second) return true;
    field = path();
    return stop("the field stands twice; keep one of the two");
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    byte = position > 0 ? position - 1 : 0;
    const std::string what =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: REASON"
    if (error.id == 406)
      return stop("a number " + what.substr(what.find("parsing")) + " overflows; write \"inf\" for infinity");
    const auto colon = what.find(": ");
    reason = "not JSON: " + (colon == std::string::npos ? what : what.substr(colon + 2)) +
             "; the file may be truncated or not a case";
    return false;
  }

 private:
  bool value() { return true; }
  bool open() {
    if (keys_.size() >= 8) {
      field = path();
      return stop("nested more than 8 levels deep; a case never is");
    }
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  bool stop(std::string why) {
    reason = std::move(why);
    return false;
  }
  std::string path() const {
    std::string s;
    for (const auto& [names, current] : keys_) {
      if (current.empty()) continue;
      if (!s.empty()) s += '.';
      s += printable(current, 40);
    }
    return s;
  }
  std::vector<std::pair<std::set<std::string>, std::string>> keys_;
};

}  // namespace

nlohmann::json parse_strict_json(const std::string& text, const std::string& origin) {
  const std::size_t bad = find_bad_utf8(text);
  if (bad != std::string::npos) case_error(origin, place(text, bad), "invalid UTF-8; save the file as UTF-8 text");
  Strict strict;
  constexpr auto format = nlohmann::json::input_format_t::json;
  if (!nlohmann::json::sax_parse(text, &strict, format, true, true))
    case_error(origin, strict.field.empty() ? place(text, strict.byte) : strict.field, strict.reason);
  return nlohmann::json::parse(text, nullptr, true, true);
}

}  // namespace attest
