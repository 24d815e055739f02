// The subcommands, each with its options: what its `--help` says. A callback sets what main() then does.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace attest {

using Action = std::function<int()>;

// Parses and acts; returns the exit code.
int dispatch(int argc, char** argv);

void add_gate(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_mutants(CLI::App& app, Action& action);
void add_field(CLI::App& app, Action& action);
void add_hunt(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_fuzz(CLI::App& app, Action& action);

// What several subcommands say and ask.
extern const char* const exit_codes;
struct Selection;
void add_selection(CLI::App& app, Selection& s, bool with_laws);
// What is wrong with a number as typed; empty if nothing is.
std::string seed_fault(const std::string& word);
std::string seconds_fault(const std::string& word);
// The corpus of the tree that the tool was built from, or "none" where that is gone.
std::string default_corpus();

}  // namespace attest
