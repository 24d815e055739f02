// Which kernels and laws a command works on.
#pragma once

#include <string>
#include <vector>

#include "properties/plugin.h"

namespace attest {

struct Selection {
  std::vector<std::string> kernels;  // globs; empty: all of them, or the plugins' alone if there are plugins
  std::vector<std::string> laws;     // globs; empty: all
  std::vector<std::string> plugins;  // paths
  std::string device = "all";        // "cpu", "cuda" or "all": where the chosen kernels run
  bool variants = false;             // the correct kernels of properties/variants too; then all is the default
};

struct LoadedKernel {
  Kernel kernel;
  bool from_plugin = false;
  std::string contract_hash;  // of every constant and promise
};

// Kernels in a fixed order: ours, the variants, mutants if a glob begins with "mutant.", then each plugin's. Raises
// UsageError if a glob matches nothing or two kernels share a name, PluginError as load_plugin does.
std::vector<LoadedKernel> select_kernels(const Selection& selection);

// Takes out our own kernels whose device is not here, and says so: "NOT_RUN a to b (3 kernels): why", a line for each
// reason. Nobody required them.
std::string drop_absent(std::vector<LoadedKernel>& kernels);
// That line.
std::string not_run_line(const std::vector<std::string>& kernels, const std::string& reason);

// Laws in the table's order. Raises UsageError if a glob matches nothing.
std::vector<const Law*> select_laws(const std::vector<std::string>& globs);

// A requirement as typed: a glob over kernel names; a plain word stands for a family ("cuda" for "cuda.*").
bool requirement_matches(const std::string& requirement, const std::string& kernel);

}  // namespace attest
