// A command in a process of its own: what it said and how it ended. What it starts ends with it.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct Ended {
  std::string output;  // standard output and standard error as they came
  std::string ending;  // "" for exit code 0, else "exit code 3", "signal 11", "did not return within 60 s"
  bool in_time = true;
  double seconds = 0;  // by the wall clock
};

// May be called from several threads. It is killed with its process group when it has said nothing for so long.
Ended run_child(const std::vector<std::string>& command, double seconds);

// The path of this program.
std::string own_path();

}  // namespace attest
