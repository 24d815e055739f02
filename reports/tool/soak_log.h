// The log of a soak: one JSON object a line. The first says what is soaked, each other one what a round came to.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace attest {

class SoakLog {
 public:
  using Json = nlohmann::ordered_json;

  // Opens the log at `path`, or begins it with `header` if there is none. Raises UsageError if it cannot be read or
  // written, if another process writes it, if a line is damaged, or if it was begun with another header: the message
  // names the first field that differs. A last line that was cut off in the middle is dropped; note() says so.
  SoakLog(const std::string& path, const Json& header);
  ~SoakLog();
  SoakLog(const SoakLog&) = delete;
  SoakLog& operator=(const SoakLog&) = delete;

  // Durable when it returns. `round` needs "round" and "complete"; a later line about the same round takes its place.
  void append(const Json& round);

  // By round number, the last line about each.
  const std::map<std::int64_t, Json>& rounds() const { return rounds_; }
  // The first round that is not there, or not complete.
  std::int64_t next() const;
  const std::string& note() const { return note_; }

 private:
  void read(const std::string& content, const Json& header);
  void compare(const Json& begun, const Json& header) const;
  void write(const std::string& line);

  std::string path_, note_;
  int file_ = -1;
  std::map<std::int64_t, Json> rounds_;
};

}  // namespace attest
