#include "reports/tool/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "properties/check.h"

namespace attest {
namespace {
std::string& command_name() {
  static std::string name = "attest";
  return name;
}
}  // namespace

std::string text(const char* format, ...) {
  va_list first, second;
  va_start(first, format);
  va_copy(second, first);
  const int size = std::vsnprintf(nullptr, 0, format, first);
  va_end(first);
  std::string out(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, second);
  va_end(second);
  return out;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  if (patterns.empty()) return true;
  for (const std::string& p : patterns)
    if (glob_match(p, name)) return true;
  return false;
}

std::uint64_t fnv(std::string_view bytes, std::uint64_t start) {
  for (const char c : bytes) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return start;
}

std::string hex(std::uint64_t hash) { return text("%016llx", static_cast<unsigned long long>(hash)); }

std::string file_hash(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return "";
  std::uint64_t hash = fnv("");
  std::string block(1 << 16, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    hash = fnv(std::string_view(block.data(), static_cast<std::size_t>(in.gcount())), hash);
  return hex(hash);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(path + ": cannot be read: " + std::strerror(errno));
  std::ostringstream all;
  all << in.rdbuf();
  if (in.bad()) throw UsageError(path + ": cannot be read: " + std::strerror(errno));
  return all.str();
}

void write_whole(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout << content << std::flush;
    return;
  }
  const std::string part = path + ".part";
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) throw UsageError(path + ": cannot be written: " + std::strerror(errno));
  std::size_t done = 0;
  bool good = true;
  while (good && done < content.size()) {
    const ssize_t n = write(file, content.data() + done, content.size() - done);
    if (n > 0) done += static_cast<std::size_t>(n);
    good = n > 0 || (n < 0 && errno == EINTR);
  }
  good = good && fsync(file) == 0;
  const int why = errno;
  close(file);
  if (!good || rename(part.c_str(), path.c_str()) != 0) {
    const int error = good ? errno : why;
    unlink(part.c_str());
    throw UsageError(path + ": cannot be written: " + std::strerror(error));
  }
}

std::string shell_quoted(const std::string& word) {
  const std::string safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=:,+@%";
  if (!word.empty() && word.find_first_not_of(safe) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string tool_command() { return command_name(); }

void set_tool_command(const char* argv0) {
  // The bootstrap script says by which name it was called itself.
  const char* script = std::getenv("ATTEST_COMMAND");
  command_name() = script && *script ? script : argv0;
}

}  // namespace attest
