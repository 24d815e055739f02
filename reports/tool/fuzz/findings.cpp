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
// Seconds for the bytes or the case of a finding. Twice what libFuzzer gives an input: a kernel that hung the worker
// hangs the check as well, and drivers of other engines give it for ever.
constexpr double patience = 120;

// The case at which a target died. What does not begin as a case stands for none.
fs::path case_left_in(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (std::ifstream(entry.path()).peek() == '{') return entry.path();
  return {};
}

std::string destination(const FuzzFolder& folder, const FuzzOptions& options) {
  return options.findings == options.corpus ? folder.findings().string() : options.findings;
}

}  // namespace

FuzzFindings::FuzzFindings(const FuzzFolder& folder, const FuzzOptions& options, const FuzzEngine& engine)
    : folder_(folder), options_(options), engine_(engine) {}

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
  // The same kernels as in the campaign: bytes choose theirs by its number among them.
  auto environment = fuzz_environment(options_);
  environment.insert(environment.end(), {{"ATTEST_FUZZ_CASES", cases}, {"ATTEST_FUZZ_RECORD", "1"}});
  FuzzProcess replay(engine_.replay(target, artifact), folder_.findings().string(), environment);
  const int status = replay.run_to_end(
      [&](const std::string& line) {
        if (const auto f = fuzz_finding(line)) said = f;
      },
      patience);
  std::string out;
  if (said) {
    out = add(target, *said);
    fs::remove(artifact, error);  // the case says it
  } else if (const fs::path last = case_left_in(cases); status != 0 && !last.empty()) {
    out = add_running(target, last, last_words);
    if (out.empty()) out = keep_bytes(target, artifact, last_words);
  } else {
    out = keep_bytes(target, artifact, status == 0 ? last_words + "; alone, its bytes do no harm" : last_words);
  }
  fs::remove_all(cases, error);
  return out;
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
  std::string command;
  for (const auto& [name, value] : fuzz_environment(options_)) command += name + "=" + shell_quoted(value) + " ";
  command += shell_quoted(target.program) + " " + shell_quoted(artifact);
  return "FINDING fuzz_" + target.name + " died: " + last_words + "\n  " + command;
}

}  // namespace attest
