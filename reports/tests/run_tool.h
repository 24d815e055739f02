// Runs the tool as a user would and keeps what it said.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attest::testing {

struct Ran {
  int code = -1;  // exit code, or -signal
  std::string out, err;
  nlohmann::json json() const;  // of standard output
};

// `arguments` as typed in a shell; runs in an empty directory of the test's own.
Ran run_tool(const std::string& arguments);
// Any shell command there.
Ran run_shell(const std::string& command);

// That directory, emptied for each test.
std::string scratch();
// Path of the test plugin that is wrong in this way ("rejects", "wrong_abi", ...); "honest" for the one that is not.
std::string plugin(const std::string& kind);
void write_file(const std::string& path, const std::string& content);
std::string read_file(const std::string& path);

}  // namespace attest::testing
