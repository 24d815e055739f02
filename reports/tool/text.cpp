#include "reports/tool/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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

namespace {

[[noreturn]] void write_error(const std::string& path, int error) {
  throw UsageError(path + ": cannot be written: " + std::strerror(error));
}

// 0, or why not.
int write_all(int file, const std::string& content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t n = write(file, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

// The file that a chain of symbolic links ends at, whether or not it is there: the link stays, its target is replaced.
std::string link_target(std::string path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (int hops = 0; fs::is_symlink(fs::symlink_status(path, error)); ++hops) {
    if (hops == 40) write_error(path, ELOOP);
    const fs::path to = fs::read_symlink(path, error);
    if (error) write_error(path, error.value());
    path = (fs::path(path).parent_path() / to).string();  // an absolute `to` replaces all of it
  }
  return path;
}

}  // namespace

bool is_replaceable(const std::string& path) {
  if (path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")) return false;
  struct stat status;
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

void write_whole(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout << content << std::flush;
    return;
  }
  // A device, a pipe, /dev/fd/3: renaming a file over it would destroy it, and nobody would read what was written.
  if (!is_replaceable(path)) {
    std::cout.flush();
    const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (file < 0) write_error(path, errno);
    const int error = write_all(file, content);
    if (close(file) != 0 && error == 0) write_error(path, errno);
    if (error != 0) write_error(path, error);
    return;
  }
  const std::string target = link_target(path), part = target + ".part";
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) write_error(path, errno);
  int error = write_all(file, content);
  if (error == 0 && fsync(file) != 0) error = errno;
  close(file);
  if (error == 0 && rename(part.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(part.c_str());
  write_error(path, error);
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
