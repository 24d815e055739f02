// Kernels in worker processes: which ones, and what a worker may use.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/select.h"

namespace attest {

enum class Isolate { plugins, all, none };

struct IsolationOptions {
  Isolate isolate = Isolate::plugins;
  double seconds = 60;  // one check, by the wall clock
  double memory = 4;    // GiB of private memory that one check may add to its worker; 0: no limit
};

// Isolating one kernel of a selection isolates them all: a process forks safely only while it has no threads.
bool isolates(const IsolationOptions& options, const std::vector<LoadedKernel>& kernels);

// Limits on memory and messages about crashes are the sanitizer's own in a build that has one.
bool under_sanitizer() noexcept;

// The options as flags for a command that repeats a crash, each with a space in front: those that are not the default.
std::string isolation_flags(const IsolationOptions& options);

}  // namespace attest
