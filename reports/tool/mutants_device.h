// The kill matrix of the GPU mutants. Each is judged by processes of its own, one for each seed, one for the corpus
// and its targeted cases, one for each tool of compute-sanitizer: a mutant that hangs or ends the device's context
// takes none with it.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/kill_matrix.h"
#include "reports/tool/mutants_sanitizer.h"

namespace attest {

// "" if there is a device, else the lines that say what is NOT_RUN, and why. Raises UsageError if no mutant matches.
std::string why_no_device_mutants(const MutantOptions& options);

// One matrix for each seed. Corpus, targeted cases and tools depend on no seed: they are run once, and count under
// each. Under the first seed a mutant is judged to the end of the budget, under the others until it is killed.
std::vector<KillMatrix> fill_device_matrices(const MutantOptions& options);

// What such a process does. options.one is "laws:NAME" (generated cases), "kill:NAME" (the same until the first kill),
// "corpus:NAME" and "targeted:NAME" (until the first kill), or "launch:NAME" (one launch, for a tool to watch).
int run_device_part(const MutantOptions& options, const std::vector<CorpusCase>& corpus);

// A row on its way between processes. Reading raises std::exception for what is no row.
std::string written_row(const KillRow& row, const std::vector<const Law*>& laws);
void read_row(KillRow& row, const std::vector<const Law*>& laws, const std::string& written);
// What is left of a row when its process ended early: the law that it was at counts as its killer.
void blame_last_check(KillRow& row, const std::vector<const Law*>& laws, const std::string& output,
                      const std::string& ending);
// What another process found of the same kernel, after the row's own.
void add_findings(KillRow& row, const KillRow& more);

}  // namespace attest
