#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "oracle/float_environment.h"
#include "reports/tool/cli.h"
#include "reports/tool/guard.h"
#include "reports/tool/text.h"

int main(int argc, char** argv) {
  using namespace attest;
  // A closed standard stream's number would be given to the first file that is opened.
  for (const int stream : {STDIN_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) {
    std::cerr << "attest: standard output is closed\n";
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write, said with its name
  set_tool_command(argv[0]);
  return run_reported([&] {
    if (const std::string fault = float_environment_fault(); !fault.empty())
      throw UsageError(fault + ": the oracle's bounds do not hold; start from an environment without it");
    return dispatch(argc, argv);
  });
}
