#include "reports/tool/fuzz/lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace attest {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return n;
}

// The number after a label that begins a word; -1 without one.
std::int64_t labelled(std::string_view line, std::string_view label) {
  for (std::size_t at = line.find(label); at != std::string_view::npos; at = line.find(label, at + 1)) {
    if (at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t') continue;
    return number(line.substr(at + label.size())).value_or(-1);
  }
  return -1;
}

bool take_prefix(std::string_view& line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return false;
  line.remove_prefix(prefix.size());
  return true;
}

std::string take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string word(line.substr(0, end));
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

}  // namespace

std::optional<FuzzStatus> fuzz_status(std::string_view line) {
  if (!take_prefix(line, "#")) return std::nullopt;
  FuzzStatus s;
  const auto executions = number(line);
  if (!executions) return std::nullopt;
  s.executions = *executions;
  s.edges = labelled(line, "cov: ");
  s.features = labelled(line, "ft: ");
  s.inputs = labelled(line, "corp: ");
  s.rate = labelled(line, "exec/s: ");
  return s;
}

std::optional<FuzzFinding> fuzz_finding(std::string_view line) {
  if (!take_prefix(line, "attest-finding: ")) return std::nullopt;
  FuzzFinding f;
  f.file = take_word(line);
  f.kernel = take_word(line);
  f.law = take_word(line);
  f.message = std::string(line);
  if (f.file.empty() || f.kernel.empty() || f.law.empty()) return std::nullopt;
  return f;
}

std::optional<FuzzWorst> fuzz_worst(std::string_view line) {
  if (!take_prefix(line, "attest-worst: ")) return std::nullopt;
  FuzzWorst w;
  w.kernel = take_word(line);
  const std::string ratio(line);
  char* end = nullptr;
  w.ratio = std::strtod(ratio.c_str(), &end);
  if (w.kernel.empty() || end == ratio.c_str() || !std::isfinite(w.ratio)) return std::nullopt;
  return w;
}

std::optional<FuzzChecks> fuzz_checks(std::string_view line) {
  long long made = 0, passed = 0, rejected = 0;
  int used = 0;
  const std::string text(line);
  if (std::sscanf(text.c_str(), "attest-checks: %lld made, %lld passed, %lld rejected%n", &made, &passed, &rejected,
                  &used) != 3 ||
      used != static_cast<int>(text.size()))
    return std::nullopt;
  return FuzzChecks{made, passed, rejected};
}

std::optional<std::int64_t> fuzz_executed(std::string_view line) {
  if (!take_prefix(line, "stat::number_of_executed_units: ")) return std::nullopt;
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return number(line);
}

bool fuzz_error(std::string_view line) {
  return line.starts_with("SUMMARY: ") || line.find("ERROR: ") != std::string_view::npos ||
         line.starts_with("no kernel for this target matches ");
}

std::string fuzz_plain(std::string_view line) {
  std::string out;
  for (std::size_t n = 0; n < line.size(); ++n) {
    if (line.substr(n).starts_with("\x1b[")) {
      n = std::min(line.find_first_not_of("0123456789;", n + 2), line.size());  // the letter that ends it
    } else if (static_cast<unsigned char>(line[n]) >= ' ') {
      out += line[n];
    }
  }
  return out;
}

std::optional<std::string> fuzz_artifact(std::string_view line) {
  constexpr std::string_view says = "Test unit written to ";
  const std::size_t at = line.find(says);
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(at + says.size()));
}

}  // namespace attest
