#include "reports/tool/fuzz/findings.h"

#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "oracle/case.h"
#include "reports/tool/fuzz/process.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* any_kernel = "*";

// A kernel that hung the worker hangs the check as well.
constexpr double patience = 120;  // seconds

std::string destination(const FuzzFolder& folder, const FuzzOptions& options) {
  return options.findings == options.corpus ? folder.findings().string() : options.findings;
}

}  // namespace

FuzzFindings::FuzzFindings(const FuzzFolder& folder, const FuzzOptions& options) : folder_(folder), options_(options) {}

std::int64_t FuzzFindings::kinds(const FuzzTarget& target) const {
  std::int64_t n = 0;
  for (const auto& [kind, times] : kinds_) n += kind.starts_with(target.name + " ");
  return n;
}

std::string FuzzFindings::add(const FuzzTarget& target, const FuzzFinding& finding) {
  if (kinds_[target.name + " " + finding.kernel + " " + finding.law]++ > 0) return "";
  const fs::path found = folder_.findings() / finding.file;  // an absolute file stays what it is
  const bool known = finding.kernel != any_kernel;
  const std::string what = known ? finding.kernel + " breaks " + finding.law + ": " + finding.message : finding.message;
  Case c;
  try {
    c = load_case(found.string());
  } catch (const std::exception& e) {
    return "FINDING " + what + "\n  its case could not be read: " + e.what();
  }
  c.about = text("%s; found by fuzz_%s", what.c_str(), target.name.c_str());
  if (known) c.laws = {finding.law};
  std::error_code error;
  fs::create_directories(destination(folder_, options_), error);
  const std::string kept =
      (fs::path(destination(folder_, options_)) / ("fuzz-" + target.name + "-" + case_hash(c) + ".case")).string();
  try {
    save_case(c, kept);
  } catch (const std::exception& e) {
    return "FINDING " + what + "\n  it stays in " + found.string() + ": " + e.what();
  }
  if (fs::path(kept) != found) fs::remove(found, error);
  std::vector<std::string> check = {"/proc/self/exe", "check", fs::absolute(kept).string()};
  if (known) check.insert(check.end(), {"--kernels", finding.kernel});
  const std::string command =
      tool_command() + " check " + shell_quoted(kept) + (known ? " --kernels " + finding.kernel : "");
  const int status = FuzzProcess(check, ".", {}).run_to_end([](const std::string&) {}, patience);
  const bool again = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 1);
  return "FINDING " + what + "\n  " + command +
         (again ? "" : "\n  which does not show it again: the target and this tool differ");
}

std::string FuzzFindings::add_artifact(const FuzzTarget& target, const std::string& artifact,
                                       const std::string& last_words) {
  const std::string cases = (folder_.findings() / ("replay-" + target.name)).string();
  std::error_code error;
  fs::remove_all(cases, error);
  fs::create_directories(cases, error);
  std::optional<FuzzFinding> said;
  FuzzProcess replay({target.program, "-timeout=60", artifact}, folder_.findings().string(),
                     {{"ATTEST_FUZZ_CASES", cases}, {"ATTEST_FUZZ_RECORD", "1"}});
  const int status = replay.run_to_end([&](const std::string& line) {
    if (const auto f = fuzz_finding(line)) said = f;
  });
  std::string out;
  if (said) {
    out = add(target, *said);
  } else if (status != 0) {
    for (const auto& entry : fs::directory_iterator(cases, error)) {
      if (std::ifstream(entry.path()).peek() == '{') out = add_running(target, entry.path(), last_words);
      if (!out.empty()) break;
    }
  }
  fs::remove_all(cases, error);
  return out.empty() ? keep_bytes(target, artifact, last_words) : out;
}

std::string FuzzFindings::add_running(const FuzzTarget& target, const fs::path& file, const std::string& last_words) {
  FuzzFinding died = {file.string(), any_kernel, last_words, "fuzz_" + target.name + " died: " + last_words};
  try {
    const Case c = load_case(died.file);
    if (c.kernels.size() == 1) died.kernel = c.kernels.front();
    if (c.laws.size() == 1) died.law = c.laws.front();
  } catch (const CaseError&) {
    // Cut off in the middle of a write: add() says so.
  }
  return add(target, died);
}

std::string FuzzFindings::keep_bytes(const FuzzTarget& target, const std::string& artifact,
                                     const std::string& last_words) {
  if (kinds_[target.name + " bytes " + last_words]++ > 0) return "";
  return "FINDING fuzz_" + target.name + " died: " + last_words + "\n  " + shell_quoted(target.program) + " " +
         shell_quoted(artifact);
}

}  // namespace attest
