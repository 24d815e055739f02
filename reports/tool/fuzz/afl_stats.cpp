#include "reports/tool/fuzz/afl_stats.h"

#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "reports/tool/text.h"

namespace attest {
namespace {

std::string_view trimmed(std::string_view s) {
  constexpr const char* blanks = " \t\r#";
  const std::size_t begin = s.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(blanks) - begin + 1);
}

// The whole part: "512.43" executions a second.
std::int64_t whole(std::string_view s) {
  s = trimmed(s);
  std::int64_t n = -1;
  return std::from_chars(s.data(), s.data() + s.size(), n).ec == std::errc() ? n : -1;
}

// Text without an end of line was cut off while it was written: its last number may be half a number.
std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    out.push_back(text.substr(0, end));
  return out;
}

std::vector<std::string_view> cells(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t comma = line.find(',');
    out.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

FuzzStatus afl_stats(std::string_view text) {
  FuzzStatus s;
  for (const std::string_view line : whole_lines(text)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::int64_t n = whole(line.substr(colon + 1));
    if (name == "execs_done") s.executions = n;
    if (name == "execs_per_sec") s.rate = n;
    if (name == "edges_found") s.edges = n;
    if (name == "corpus_found") s.inputs = n;
  }
  return s;
}

FuzzStatus afl_plot(std::string_view text) {
  FuzzStatus s;
  std::vector<std::string_view> names, last;
  for (const std::string_view line : whole_lines(text)) {
    if (line.starts_with("#")) {
      names = cells(line);
    } else {
      last = cells(line);
    }
  }
  for (std::size_t n = 0; n < names.size() && n < last.size(); ++n) {
    if (names[n] == "total_execs") s.executions = whole(last[n]);
    if (names[n] == "execs_per_sec") s.rate = whole(last[n]);
    if (names[n] == "edges_found") s.edges = whole(last[n]);
  }
  return s;
}

std::string afl_death(std::string_view crash) {
  const std::size_t at = crash.find("sig:");
  if (at == std::string_view::npos) return "no end within its time";  // of the folder hangs
  const int number = static_cast<int>(whole(crash.substr(at + 4)));
  return text("signal %d (%s)", number, strsignal(number));
}

}  // namespace attest
