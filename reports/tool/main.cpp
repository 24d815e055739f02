// The command line. What it says in --help is tested: every example there runs.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>

#include "oracle/float_environment.h"
#include "reports/tool/check.h"
#include "reports/tool/gate.h"
#include "reports/tool/guard.h"
#include "reports/tool/listing.h"
#include "reports/tool/mutants.h"
#include "reports/tool/text.h"

namespace {

using namespace attest;

constexpr const char* about = R"(Attest decides whether an attention kernel is right.

Start with:
  attest gate                                every kernel, every law
  attest gate --plugin ./libmine.so          your own kernels
  attest check FILE.case                     one case, explained element by element
  attest gate --help                         more)";

constexpr const char* codes = R"(
Exit codes: 0 pass; 1 a failure; 2 usage or bad input; 3 no failure, but something required has no PASS.)";

constexpr const char* gate_examples = R"(
Examples:
  attest gate                                              the default budget, our kernels
  attest gate --kernels 'cpu.fa2.*' --laws '*-invariant'   some kernels, some laws
  attest gate --plugin ./libmine.so --require-contract fp32.fa2
  attest gate --cases 500 --seed 7 --shard 2/8 --json shard2.json
  attest gate --seconds 10                                 what fits in ten seconds; marked truncated
  attest gate --json - --quiet | jq .verdict

A run is a function of build, seed and --cases: the number of jobs changes nothing.)";

void add_selection(CLI::App& app, Selection& s, bool with_laws) {
  app.add_option("--kernels", s.kernels, "Kernels to work on (globs). Default: all; with --plugin, the plugins' alone")
      ->type_name("GLOB");
  if (with_laws) app.add_option("--laws", s.laws, "Laws to check (globs). Default: all")->type_name("GLOB");
  app.add_option("--plugin", s.plugins, "A shared library with kernels of your own (repeatable)")->type_name("LIB.so");
}

void read_shard(const std::string& word, GateOptions& o) {
  int used = 0;
  if (std::sscanf(word.c_str(), "%9d/%9d%n", &o.shard, &o.shards, &used) != 2 ||
      used != static_cast<int>(word.size()) || o.shard < 1 || o.shards < 1 || o.shard > o.shards)
    throw UsageError("--shard " + word + ": need i/n with 1 <= i <= n");
}

// CLI11 reads "-1" and numbers beyond 64 bits as it likes; a seed is exactly what was typed.
std::string seed_fault(const std::string& word) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seed);
  if (error == std::errc() && end == word.data() + word.size()) return "";
  return "is " + word + ", need a whole number from 0 to 18446744073709551615";
}

std::string seconds_fault(const std::string& word) {
  char* end = nullptr;
  const double seconds = std::strtod(word.c_str(), &end);
  if (end != word.c_str() && *end == '\0' && seconds > 0 && std::isfinite(seconds)) return "";
  return "is " + word + ", need a finite number above 0";
}

std::string default_corpus() {
  const std::string built_in = ATTEST_CORPUS_DIR;
  return std::filesystem::is_directory(built_in) ? built_in : "none";
}

int dispatch(int argc, char** argv) {
  CLI::App app(about);
  app.require_subcommand(1);
  app.footer(codes);
  std::function<int()> action;

  GateOptions gate;
  std::string shard = "1/1";
  CLI::App* g = app.add_subcommand("gate", "The correctness gate: kernels x laws, on generated cases and the corpus");
  g->footer(std::string(gate_examples) + "\n" + codes);
  add_selection(*g, gate.selection, true);
  g->add_option("--seed", gate.seed, "Seed of everything random")->capture_default_str()->check(seed_fault, "", "");
  g->add_option("--cases", gate.cases, "Generated cases for each kernel and law (the budget)")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000000));
  g->add_option("--seconds", gate.seconds, "Stop beginning checks after so long; the result is marked truncated")
      ->check(seconds_fault, "", "");
  g->add_option("--shard", shard, "Check the i-th of n parts of the kernel x law pairs")->type_name("i/n");
  g->add_option("--jobs", gate.jobs, "Threads that check. Default: one for each core")->check(CLI::Range(1, 256));
  g->add_option("--require", gate.require,
                "A kernel glob, or a family such as cuda, that must have a PASS, else exit 3")
      ->type_name("X");
  g->add_option("--require-contract", gate.require_preset, "Refuse kernels whose Contract is not this preset (glob)")
      ->type_name("PRESET");
  g->add_option("--corpus", gate.corpus, "Directory of .case files to replay; 'none' for none")->type_name("DIR");
  g->add_option("--waivers", gate.waivers, "Ledger of known failures: kernel, law, reason, expires")->type_name("FILE");
  g->add_option("--out", gate.out, "Where failing .case files go")->type_name("DIR")->capture_default_str();
  g->add_option("--json", gate.json, "Write the report as JSON; '-' for standard output")->type_name("FILE");
  g->add_option("--junit", gate.junit, "Write the report as JUnit XML")->type_name("FILE");
  g->add_flag("--quiet", gate.quiet, "Only failures and the verdict");
  g->callback([&] {
    action = [&] {
      read_shard(shard, gate);
      if (gate.corpus.empty()) gate.corpus = default_corpus();
      if (gate.json == "/dev/stdout") gate.json = "-";
      return run_guarded(gate.json, [&] { return run_gate(gate); });
    };
  });

  CheckOptions check;
  CLI::App* c = app.add_subcommand("check", "One .case: truth, bound, output and verdict, element by element");
  c->footer(std::string("\nExample:\n  attest check attest-failures/x.case --kernels 'cpu.fa2.*' --all\n") + codes);
  c->add_option("FILE", check.file, "The case")->required();
  add_selection(*c, check.selection, true);
  c->add_flag("--all", check.all, "Every element, not only the worst ten");
  c->callback([&] { action = [&] { return run_guarded("", [&] { return run_check(check); }); }; });

  Selection kernels;
  std::string contract;
  CLI::App* k = app.add_subcommand("kernels", "The kernels: name, operation, Contract, promises");
  add_selection(*k, kernels, false);
  k->add_option("--contract", contract, "Print every constant of this kernel's or preset's Contract, with its source")
      ->type_name("NAME");
  k->callback([&] {
    action = [&] {
      return run_guarded("",
                         [&] { return contract.empty() ? list_kernels(kernels) : show_contract(kernels, contract); });
    };
  });

  app.add_subcommand("laws", "The laws: name and statement")->callback([&] { action = list_laws; });

  MutantOptions mutants;
  CLI::App* m = app.add_subcommand("mutants", "The kill matrix: planted bugs x laws, with the gate's own budget");
  m->footer(std::string("\nExamples:\n  attest mutants\n  attest mutants --mutants 'split-*' --cases 4\n") +
            "\nExit codes: 0 every mutant is killed and every control passes; 1 not so; 2 usage or bad input.");
  m->add_option("--mutants", mutants.mutants, "Mutants to judge (globs). Default: all")->type_name("GLOB");
  m->add_option("--laws", mutants.laws, "Laws to check (globs). Default: all")->type_name("GLOB");
  m->add_option("--seed", mutants.seed, "Seed of everything random")->capture_default_str()->check(seed_fault, "", "");
  m->add_option("--cases", mutants.cases, "Generated cases for each mutant and law (the gate's budget)")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  m->add_option("--corpus", mutants.corpus, "Directory of .case files to replay; 'none' for none")->type_name("DIR");
  m->add_option("--jobs", mutants.jobs, "Threads that check. Default: one for each core")->check(CLI::Range(1, 256));
  m->add_option("--json", mutants.json, "Write the matrix as JSON; '-' for standard output")->type_name("FILE");
  m->add_flag("--quiet", mutants.quiet, "Only survivors, false alarms and the verdict");
  m->callback([&] {
    action = [&] {
      if (mutants.corpus.empty()) mutants.corpus = default_corpus();
      if (mutants.json == "/dev/stdout") mutants.json = "-";
      return run_mutants(mutants);
    };
  });

  std::string directory;
  CLI::App* n = app.add_subcommand("new-plugin", "Write a buildable skeleton for a kernel of your own");
  n->add_option("DIR", directory, "A new or empty directory")->required();
  n->callback([&] { action = [&] { return new_plugin(directory); }; });

  try {
    const auto is_asked = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_asked).empty())
      throw UsageError("no command is named '" + std::string(argv[1]) + "'; `" + tool_command() +
                       " --help` lists them");
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;  // CLI11 numbers its own errors from 100
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
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
