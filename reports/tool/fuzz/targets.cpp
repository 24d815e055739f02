#include "reports/tool/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "reports/tool/fuzz/engine.h"
#include "reports/tool/fuzz/process.h"
#include "reports/tool/text.h"

namespace attest {

namespace fs = std::filesystem;

std::map<std::string, std::string> FuzzTarget::options() const {
  std::map<std::string, std::string> out;
  std::ifstream file(program + ".options");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, equals, value;
    if (words >> name >> equals >> value && equals == "=") out[name] = value;
  }
  // Its name there is that of a file beside the target.
  if (const auto words = out.find("dict"); words != out.end())
    words->second = (fs::path(program).parent_path() / words->second).string();
  return out;
}

std::vector<std::pair<std::string, std::string>> fuzz_environment(const FuzzOptions& options) {
  if (options.kernels.empty()) return {};
  std::string globs;
  for (const std::string& k : options.kernels) globs += (globs.empty() ? "" : ",") + k;
  return {{"ATTEST_FUZZ_KERNELS", globs}};
}

std::vector<FuzzTarget> fuzz_targets(const FuzzOptions& options, const char* preset) {
  constexpr std::string_view prefix = "fuzz_";
  std::vector<FuzzTarget> out;
  std::string built;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(options.bin, none)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(prefix) || file.find('.') != std::string::npos || access(entry.path().c_str(), X_OK) != 0 ||
        !entry.is_regular_file(none))
      continue;
    const std::string name = file.substr(prefix.size());
    if (name == "tests") continue;
    built += (built.empty() ? "" : ", ") + name;
    if (matches_any(options.targets, name) || matches_any(options.targets, file))
      out.push_back({name, fs::absolute(entry.path()).string()});
  }
  if (built.empty())
    throw UsageError(
        text("%s has no fuzz targets. Build them with clang: cmake --preset %s && cmake --build --preset %s "
             "--target fuzzers, and name build/%s/bin with --bin",
             options.bin.c_str(), preset, preset, preset));
  if (out.empty()) throw UsageError("no fuzz target matches --target; there are: " + built);
  std::sort(out.begin(), out.end(), [](const FuzzTarget& a, const FuzzTarget& b) { return a.name < b.name; });
  return out;
}

FuzzFolder::FuzzFolder(const FuzzOptions& options, const std::vector<FuzzTarget>& targets)
    : path_(fs::absolute(options.corpus)), stored_(options.stored) {
  std::error_code error;
  fs::create_directories(findings(), error);
  for (const FuzzTarget& t : targets) {
    const fs::path now = inputs(t), before = now.string() + ".before";
    fs::remove_all(now.string() + ".smaller", error);
    if (fs::exists(before) && !fs::exists(now)) fs::rename(before, now, error);
    fs::remove_all(before, error);
    fs::create_directories(now, error);
    if (error) throw UsageError("cannot make " + now.string() + ": " + error.message());
  }
  if (access(findings().c_str(), W_OK) != 0) throw UsageError("cannot write to " + findings().string());
}

bool FuzzFolder::minimise(const FuzzTarget& target, const FuzzEngine& engine, std::string& why) const {
  const fs::path now = inputs(target), smaller = now.string() + ".smaller", before = now.string() + ".before";
  const std::vector<std::string> command = engine.minimise(target, *this, smaller.string());
  if (command.empty()) return true;
  std::error_code error;
  fs::remove_all(smaller, error);
  fs::create_directories(smaller, error);
  std::string last;
  const bool done =
      FuzzProcess(command, findings().string(), {}).run_to_end([&](const std::string& line) { last = line; }) == 0;
  // Nothing at all is never smaller than something.
  if (!done || (fs::is_empty(smaller, error) && !fs::is_empty(now, error))) {
    fs::remove_all(smaller, error);
    why = "minimising " + target.name + " failed: " + last;
    return false;
  }
  fs::rename(now, before, error);
  if (!error) fs::rename(smaller, now, error);
  if (error) {
    why = "minimising " + target.name + ": " + error.message();
    return false;
  }
  fs::remove_all(before, error);
  return true;
}

std::string FuzzFolder::stored(const FuzzTarget& target) const {
  const fs::path folder = fs::absolute(fs::path(stored_) / target.name);
  return stored_ != "none" && fs::is_directory(folder) ? folder.string() : "";
}

std::int64_t FuzzFolder::count(const FuzzTarget& target) const {
  std::error_code none;
  std::int64_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(inputs(target), none)) ++n;
  return n;
}

}  // namespace attest
