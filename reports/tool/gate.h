// The gate: every selected kernel under every law that binds it, on generated cases and the corpus.
#pragma once

#include <string>

#include "reports/tool/tally.h"

namespace attest {

// Runs, reports, writes the files asked for; returns the exit code. Raises UsageError, PluginError or CaseError.
int run_gate(const GateOptions& options);

// Carries a plan out: checks, shrinks and saves failures, renews the partial JSON report if options.json names a file,
// shows progress on a terminal; Ctrl-C ends it early with `interrupted` set. Prints and reports nothing else. The
// directory options.out must be there (OutDirectory), and install_crash_notes(options.out) done.
GateResult judge(const GateOptions& options, const Plan& plan, const std::vector<Waiver>& ledger);

// "attest-gate/1". `running`: a report of a run that has not ended; killed, it leaves this.
std::string gate_json(const Plan& plan, const GateOptions& options, const GateResult& result, bool running);
// JUnit: one testcase for each kernel and law.
std::string gate_junit(const Plan& plan, const GateResult& result);
// What people read: a table by kernel, failures, what is missing, waivers, and the verdict as the last line.
std::string gate_text(const Plan& plan, const GateOptions& options, const GateResult& result);
// One line: law, kernel, where, got, want, error/bound, and the command that reproduces it.
std::string failure_line(const Pair& pair, const Failure& failure);

// "--variants", and "--plugin a.so" for every plugin, each with a space in front.
std::string plugin_flags(const Selection& selection);

}  // namespace attest
