// What there is: kernels with their Contracts, laws with their sentences, and a skeleton for a kernel of your own.
#pragma once

#include <string>

#include "reports/tool/select.h"

namespace attest {

// One line a kernel: name, operation, Contract, promises.
int list_kernels(const Selection& selection);
// Every constant of a kernel's or a preset's Contract with its source. Raises UsageError for an unknown name.
int show_contract(const Selection& selection, const std::string& name);
int list_laws();

// Writes a buildable plugin with one kernel into a new or empty directory. Raises UsageError.
int new_plugin(const std::string& directory);

}  // namespace attest
