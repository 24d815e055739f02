// A child process whose output is read line by line while it runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace attest {

class FuzzProcess {
 public:
  // Standard output and error go to one pipe. The child is in a group of its own: Ctrl-C is for the tool, which ends
  // its children in order; and it dies with the tool. directory: where it works; environment: variables
  // set beside our own. Raises UsageError.
  FuzzProcess(const std::vector<std::string>& command, const std::string& directory,
              const std::vector<std::pair<std::string, std::string>>& environment);
  ~FuzzProcess();
  FuzzProcess(const FuzzProcess&) = delete;
  FuzzProcess& operator=(const FuzzProcess&) = delete;

  int file() const { return file_; }  // to poll
  pid_t id() const { return process_; }
  // Hands over the lines that are there, without waiting. False once the child has closed its output.
  bool read_lines(const std::function<void(const std::string&)>& line);
  // Reads all lines until the child has ended, or is killed after so many seconds (0: never); the status of waitpid.
  int run_to_end(const std::function<void(const std::string&)>& line, double seconds = 0);
  void interrupt() const;  // SIGINT: engines end in order
  void kill() const;
  int wait();  // the status of waitpid

 private:
  pid_t process_ = -1;
  int file_ = -1, status_ = 0;
  std::string pending_;
};

// Seconds of a clock that only moves forward.
double fuzz_clock();

}  // namespace attest
