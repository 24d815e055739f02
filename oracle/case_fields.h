// Reading JSON objects strictly: a field is known and has its type, or CaseError says which is not and why.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/case_error.h"
#include "oracle/number.h"

namespace attest {

// One JSON value with the path that led to it.
class Field {
 public:
  Field(const nlohmann::json& value, std::string path, const std::string& origin)
      : value_(value), path_(std::move(path)), origin_(origin) {}

  [[noreturn]] void fail(std::string_view reason) const { case_error(origin_, path_, reason); }

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t lo, std::int64_t hi) const;
  std::uint64_t seed() const;  // JSON integer or a string of decimal digits
  double number() const;       // JSON number or number text (number.h)
  std::vector<double> numbers() const;
  std::vector<std::int64_t> integers(std::int64_t lo, std::int64_t hi) const;
  std::vector<std::string> texts() const;

  // The value whose word this is.
  template <class T>
  T one_of(const std::vector<std::pair<std::string_view, T>>& words) const {
    const std::string word = text();
    std::string known;
    for (const auto& [w, value] : words) {
      if (w == word) return value;
      known += (known.empty() ? "" : ", ") + std::string(w);
    }
    fail("unknown word '" + printable(word) + "'; use one of: " + known);
  }

  const nlohmann::json& json() const { return value_; }
  const std::string& path() const { return path_; }
  const std::string& origin() const { return origin_; }
  Field at(std::size_t index) const;
  const nlohmann::json& array() const;

 private:
  [[noreturn]] void wrong_type(std::string_view wanted) const;
  const nlohmann::json& value_;
  std::string path_;
  const std::string& origin_;
};

// Calls read(name, field) for each member; read returns false where it does not know the name.
template <class Read>
void for_each_field(const Field& object, std::string_view known, Read read) {
  if (!object.json().is_object()) object.fail("must be an object { ... } with some of: " + std::string(known));
  for (const auto& [key, value] : object.json().items()) {
    const std::string path = object.path() == "$" ? printable(key) : object.path() + "." + printable(key);
    const Field field(value, path, object.origin());
    if (!read(key, field)) field.fail("unknown field; known here: " + std::string(known));
  }
}

// Parses JSON with comments. Invalid UTF-8, duplicated keys, nesting beyond 8 levels, numbers that no double holds, and
// text after the end raise CaseError with line and column.
nlohmann::json parse_strict_json(const std::string& text, const std::string& origin);

}  // namespace attest
