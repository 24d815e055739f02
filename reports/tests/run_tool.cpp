#include "reports/tests/run_tool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace attest::testing {
namespace fs = std::filesystem;

std::string scratch() {
  static std::string last_test, directory;
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string test = std::string(info->test_suite_name()) + "." + info->name();
  if (test != last_test) {
    // By process id: ctest runs test cases side by side.
    directory = (fs::temp_directory_path() / ("attest-test-" + std::to_string(getpid()))).string();
    fs::remove_all(directory);
    fs::create_directories(directory);
    last_test = test;
    std::atexit([] { fs::remove_all(directory); });
  }
  return directory;
}

Ran run_shell(const std::string& command) {
  const std::string dir = scratch(), out = dir + "/.out", err = dir + "/.err";
  const int status = std::system(
      ("unset ATTEST_COMMAND; cd '" + dir + "' && { " + command + "; } >'" + out + "' 2>'" + err + "' </dev/null")
          .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(out), read_file(err)};
}

Ran run_tool(const std::string& arguments) { return run_shell("'" ATTEST_TOOL "' " + arguments); }

std::string plugin(const std::string& kind) { return ATTEST_TEST_PLUGINS "/plugin_" + kind + ".so"; }

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

nlohmann::json Ran::json() const { return nlohmann::json::parse(out); }

}  // namespace attest::testing
