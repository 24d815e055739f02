#include "reports/tool/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "reports/tool/text.h"

namespace attest {

namespace fs = std::filesystem;

void begin_reports(const GateOptions& options) {
  for (const std::string& path : {options.json, options.junit}) {
    const fs::path parent = fs::path(path).parent_path();
    if (!parent.empty() && !fs::is_directory(parent))
      throw UsageError(path + ": cannot be written: " + parent.string() + " is not a directory");
  }
  if (!options.json.empty() && is_replaceable(options.json))
    write_whole(options.json,
                text("{\n  \"schema\": \"attest-gate/1\",\n  \"verdict\": \"running\",\n  \"seed\": %llu\n}\n",
                     static_cast<unsigned long long>(options.seed)));
  if (!options.junit.empty() && is_replaceable(options.junit))
    write_whole(
        options.junit,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"attest gate\" tests=\"1\" failures=\"0\" "
        "errors=\"1\" skipped=\"0\">\n  <testcase classname=\"gate\" name=\"run\"><error message=\"the run did not "
        "end\"></error></testcase>\n</testsuite>\n");
}

void write_partial(const GateOptions& options, const std::string& report) {
  if (options.json.empty() || !is_replaceable(options.json)) return;
  try {
    write_whole(options.json, report);
  } catch (const UsageError&) {
  }
}

std::string error_json(const std::string& message) {
  const nlohmann::ordered_json report = {{"schema", "attest-gate/1"}, {"verdict", "error"}, {"message", message}};
  return report.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

OutDirectory::OutDirectory(const std::string& path) {
  fs::path missing = fs::path(path).lexically_normal();
  if (!missing.has_filename()) missing = missing.parent_path();
  for (std::error_code e; !missing.empty() && !fs::exists(fs::symlink_status(missing, e));
       missing = missing.parent_path())
    made_.push_back(missing);
  std::error_code error;
  fs::create_directories(path, error);
  const std::string probe = (fs::path(path) / (".attest-" + std::to_string(getpid()))).string();
  const int file = error ? -1 : open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  const std::string why = error ? error.message() : std::strerror(errno);
  if (file < 0) {
    tidy();
    throw UsageError("--out " + path + ": failing cases cannot be written there: " + why);
  }
  close(file);
  unlink(probe.c_str());
}

void OutDirectory::tidy() const {
  for (const fs::path& p : made_)
    if (rmdir(p.c_str()) != 0) return;  // not empty
}

}  // namespace attest
