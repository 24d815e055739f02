#include "reports/tool/mutants_sanitizer.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "reports/tool/mutants_child.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::string not_a_law(const Case&, const Kernel&) { return "a tool of compute-sanitizer watches one launch"; }

constexpr Law sanitizer_tool(std::string_view name, std::string_view statement) {
  return {name, statement, not_a_law, nullptr, nullptr, false};
}
constexpr Law kTools[] = {
    sanitizer_tool("memcheck", "nothing outside of an allocation is read or written"),
    sanitizer_tool("initcheck", "no device memory is read before it is written"),
    sanitizer_tool("racecheck", "no two threads access shared memory without a barrier between them, unless both read"),
    sanitizer_tool("synccheck", "every thread of a block meets every barrier"),
};

// The line without its mark; "" if it has none.
std::string without_mark(const std::string& line) {
  constexpr std::string_view mark = "=========";
  if (!line.starts_with(mark)) return "";
  const std::size_t begin = line.find_first_not_of(" \t\r", mark.size());
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

std::string cut_short(const std::string& s) { return s.size() <= 200 ? s : s.substr(0, 197) + "..."; }

}  // namespace

std::span<const Law> sanitizer_tools() { return kTools; }

std::string find_sanitizer() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream words(path);
    for (std::string folder; std::getline(words, folder, ':');) folders.push_back(folder);
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* toolkit = std::getenv(name)) folders.push_back(std::string(toolkit) + "/bin");
  folders.insert(folders.end(), {"/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"});
  for (const std::string& folder : folders) {
    const std::string path = folder + "/compute-sanitizer";
    if (!folder.empty() && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::string sanitizer_version(const std::string& sanitizer) {
  std::istringstream lines(run_child({sanitizer, "--version"}, 30).output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("ersion") != std::string::npos) return line;
  return "";
}

SanitizerRun read_sanitizer(const std::string& output) {
  SanitizerRun r;
  std::istringstream lines(output);
  std::string first, where, last;
  for (std::string line; std::getline(lines, line);) {
    const std::string words = without_mark(line);
    if (!line.empty()) last = line;
    if (words.empty() || words.starts_with("COMPUTE-SANITIZER")) continue;
    // "ERROR SUMMARY: 2 errors", "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"
    if (const std::size_t at = words.find("SUMMARY: "); at != std::string::npos) {
      r.ran = true;
      r.found |= std::atoll(words.c_str() + at + 9) > 0;
    } else if (first.empty()) {
      first = words;
    } else if (where.empty()) {
      where = words;
    }
  }
  if (where.starts_with("at ")) first += " " + where;
  if (r.found || (!r.ran && !first.empty())) r.evidence = cut_short(first);
  if (!r.ran && first.empty()) r.evidence = cut_short("no summary: " + last);
  return r;
}

SanitizerRun run_sanitizer(const std::string& sanitizer, const std::string& tool,
                           const std::vector<std::string>& command, double seconds) {
  std::vector<std::string> words = {sanitizer, "--tool", tool, "--print-limit", "10"};
  words.insert(words.end(), command.begin(), command.end());
  const Ended e = run_child(words, seconds);
  SanitizerRun r = read_sanitizer(e.output);
  r.seconds = e.seconds;
  if (!e.in_time && !r.found) {
    r.evidence = (r.evidence.starts_with("no summary") ? "" : r.evidence + "; ") + e.ending;
    r.ran = r.found = true;
  }
  return r;
}

}  // namespace attest
