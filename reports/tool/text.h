// Small things that every part of the tool needs: formatting, globs, hashes, files that are whole or absent.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

// A command line that asks for something impossible, or a file that cannot be read: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

// True if one of the globs matches, or there is none.
bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

// FNV-1a, 64 bits: names things, guards nothing.
std::uint64_t fnv(std::string_view bytes, std::uint64_t start = 0xcbf29ce484222325u);
std::string hex(std::uint64_t hash);
// Of a file's bytes; "" if it cannot be read.
std::string file_hash(const std::string& path);

std::string read_text(const std::string& path);

// True for a regular file, through symbolic links too, and for one that is not there yet: what write_whole() replaces.
bool is_replaceable(const std::string& path);

// Temporary file, fsync, rename: a reader sees the old file or the new one; of a symbolic link the target is replaced.
// What is no regular file (a device, a pipe) is written to as it is. "-" is standard output. Raises UsageError.
void write_whole(const std::string& path, const std::string& content);

// For the line that reproduces a failure: quoted where a POSIX shell would take it apart.
std::string shell_quoted(const std::string& word);

// How this tool was called, for commands that people copy.
std::string tool_command();
void set_tool_command(const char* argv0);

}  // namespace attest
