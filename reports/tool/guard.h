// The part of the tool that runs kernels runs in a child process: a kernel that ends it early does not end it green.
#pragma once

#include <functional>
#include <string>

namespace attest {

enum class Ending : char { finished = 'f', crashed = 'c' };

// Runs the action in a child process and returns its exit code. If the child ends without having said that it finished
// (exit() or a signal inside a kernel), says so, saves the cases of the checks that were running and returns 1; the
// JSON report at `json`, if it is a file, then has the verdict "crashed". Ctrl-C and SIGTERM reach the child. To be
// called before any thread or plugin exists.
int run_guarded(const std::string& json, const std::function<int()>& action);

// Runs the action here. An exception becomes one line on standard error and exit code 2, as does a standard output that
// cannot be written: a report that nobody got is no report.
int run_reported(const std::function<int()>& action);

// In the child; safe in a signal handler. The parent takes the exit code from here.
void tell_parent(Ending ending, int code) noexcept;
bool parent_was_told() noexcept;

// In a process that the child has forked: it has nothing to tell.
void leave_guard() noexcept;

}  // namespace attest
