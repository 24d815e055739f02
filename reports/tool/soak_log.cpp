#include "reports/tool/soak_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr const char* schema = "attest-soak/1";

std::optional<SoakLog::Json> parsed(const std::string& line) {
  SoakLog::Json j = SoakLog::Json::parse(line, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return std::nullopt;
  return j;
}

bool is_round(const SoakLog::Json& j) {
  const auto whole = [&](const char* field) { return j.contains(field) && j[field].is_number_integer(); };
  return whole("round") && whole("seed") && j.contains("complete") && j["complete"].is_boolean() &&
         j.contains("counts") && j["counts"].is_object();
}

std::string shown(const SoakLog::Json& value) {
  const std::string all = value.dump();
  return all.size() > 60 ? all.substr(0, 57) + "..." : all;
}

}  // namespace

SoakLog::SoakLog(const std::string& path, const Json& header) : path_(path) {
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw UsageError("--log " + path + ": cannot be written: " + std::strerror(errno));
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0)
      throw UsageError("--log " + path + ": another soak writes it; wait for its end, or give another --log");
    Json first = {{"schema", schema}};
    first.update(header);
    read(read_text(path), first);
  } catch (...) {
    close(file_);
    throw;
  }
}

SoakLog::~SoakLog() { close(file_); }

void SoakLog::read(const std::string& content, const Json& header) {
  std::size_t begin = 0;
  for (int number = 1; begin < content.size(); ++number) {
    const std::size_t end = content.find('\n', begin);
    const bool last = end == std::string::npos || end + 1 == content.size();
    const std::string line = content.substr(begin, end == std::string::npos ? end : end - begin);
    const auto j = parsed(line);
    const bool good = end != std::string::npos && j &&
                      (number == 1 ? j->contains("schema") && (*j)["schema"] == schema : is_round(*j));
    const bool ours = number > 1 || line.starts_with("{\"schema\":\"attest-soak");
    if (!good && !(last && ours))
      throw UsageError("--log " + path_ + ": line " + std::to_string(number) +
                       (number == 1 ? " is not that of a soak's log; give another --log"
                                    : " is damaged; mend or move the file, or give another --log"));
    if (!good) {
      note_ = text("%s: line %d was cut off in the middle and is dropped", path_.c_str(), number);
      if (ftruncate(file_, static_cast<off_t>(begin)) != 0)
        throw UsageError("--log " + path_ + ": cannot be written: " + std::strerror(errno));
      break;
    }
    if (number == 1)
      compare(*j, header);
    else
      rounds_[(*j)["round"].get<std::int64_t>()] = *j;
    begin = end + 1;
  }
  if (begin == 0) write(header.dump());
}

void SoakLog::compare(const Json& begun, const Json& header) const {
  for (const auto& [field, value] : header.items()) {
    const Json before = begun.contains(field) ? begun[field] : Json();
    if (before == value) continue;
    throw UsageError("--log " + path_ + ": was begun with " + field + " " + shown(before) + ", this run has " +
                     shown(value) + "; " +
                     (field == "build" ? "a soak is about one build: give another --log"
                                       : "go on with the same options, or give another --log"));
  }
}

void SoakLog::append(const Json& round) {
  // A kernel's message may hold any bytes.
  write(round.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace));
  rounds_[round["round"].get<std::int64_t>()] = round;
}

// One write, so that a line is cut off at most at its end.
void SoakLog::write(const std::string& line) {
  const std::string whole = line + "\n";
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t n = ::write(file_, whole.data() + done, whole.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw UsageError("--log " + path_ + ": cannot be written: " + std::strerror(n < 0 ? errno : EIO));
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file_) != 0 && errno != EINVAL)
    throw UsageError("--log " + path_ + ": cannot be written: " + std::strerror(errno));
}

std::int64_t SoakLog::next() const {
  std::int64_t round = 0;
  for (const auto& [number, line] : rounds_) {
    if (number != round || !line["complete"].get<bool>()) return round;
    ++round;
  }
  return round;
}

}  // namespace attest
