// gate and check: what judges kernels.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "reports/tool/check.h"
#include "reports/tool/cli.h"
#include "reports/tool/gate.h"
#include "reports/tool/guard.h"
#include "reports/tool/soak.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr const char* gate_examples = R"(
Examples:
  attest gate                                              the default budget, our kernels
  attest gate --kernels 'cpu.fa2.*' --laws '*-invariant'   some kernels, some laws
  attest gate --plugin ./libmine.so --require-contract fp32.fa2
  attest gate --cases 500 --seed 7 --shard 2/8 --json shard2.json
  attest gate --seconds 10                                 what fits in ten seconds; marked truncated
  attest gate --json - --quiet | jq .verdict
  attest gate --soak --seconds 20 --log soak.jsonl         false alarms: correct kernels, round after round

A run is a function of build, seed and --cases: the number of jobs changes nothing.)";

void read_shard(const std::string& word, GateOptions& o) {
  int used = 0;
  if (std::sscanf(word.c_str(), "%9d/%9d%n", &o.shard, &o.shards, &used) != 2 ||
      used != static_cast<int>(word.size()) || o.shard < 1 || o.shards < 1 || o.shard > o.shards)
    throw UsageError("--shard " + word + ": need i/n with 1 <= i <= n");
}

void add_isolation(CLI::App& app, IsolationOptions& o) {
  auto* isolate = app.add_flag_callback(
      "--isolate", [&o] { o.isolate = Isolate::all; }, "Run every kernel in a worker process; plugins always are");
  app.add_flag_callback(
         "--no-isolate", [&o] { o.isolate = Isolate::none; },
         "Run plugins in this process too, for a debugger: a crash ends it")
      ->excludes(isolate);
  app.add_option("--limit-seconds", o.seconds, "Isolated: longest that one check may take")
      ->capture_default_str()
      ->check(seconds_fault, "", "");
  app.add_option("--limit-memory", o.memory,
                 std::string("Isolated: GiB that one check may add; 0 for no limit") +
                     (under_sanitizer() ? " (not applied: this build has a sanitizer)" : ""))
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
}

void add_soak(CLI::App& app, SoakOptions& o, bool& soaks) {
  auto* soak = app.add_flag("--soak", soaks, "Round after round with seeds of their own, variants too, until Ctrl-C");
  const auto add = [&](CLI::Option* option) { option->needs(soak); };
  add(app.add_option("--log", o.log, "Soak: one JSON line for each round; an old log is gone on with")
          ->type_name("FILE")
          ->capture_default_str());
  add(app.add_option("--rounds", o.rounds, "Soak: end when the log has so many")->check(CLI::PositiveNumber));
  add(app.add_option("--checks", o.checks, "Soak: end when so many in the log have passed or failed")
          ->check(CLI::PositiveNumber));
}

SoakOptions soak_of(const GateOptions& gate, SoakOptions soak) {
  if (!gate.json.empty() || !gate.junit.empty() || !gate.waivers.empty())
    throw UsageError("--soak has neither --json, --junit nor --waivers; what came of its rounds is in --log");
  soak.gate = gate;
  soak.gate.selection.variants = true;
  return soak;
}

}  // namespace

void add_gate(CLI::App& app, Action& action) {
  struct Options {
    GateOptions gate;
    SoakOptions soak;
    std::string shard = "1/1";
    bool soaks = false;
  };
  const auto options = std::make_shared<Options>();
  GateOptions& gate = options->gate;
  CLI::App* g = app.add_subcommand("gate", "The correctness gate: kernels x laws, on generated cases and the corpus");
  g->footer(std::string(gate_examples) + "\n" + exit_codes);
  add_selection(*g, gate.selection, true);
  g->add_option("--seed", gate.seed, "Seed of everything random")->capture_default_str()->check(seed_fault, "", "");
  g->add_option("--cases", gate.cases, "Generated cases for each kernel and law (the budget)")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000000));
  g->add_option("--seconds", gate.seconds, "Stop beginning checks after so long; the result is marked truncated")
      ->check(seconds_fault, "", "");
  g->add_option("--shard", options->shard, "Check the i-th of n parts of the kernel x law pairs")->type_name("i/n");
  g->add_option("--jobs", gate.jobs, "Threads that check. Default: one for each core")->check(CLI::Range(1, 256));
  g->add_option("--require", gate.require,
                "A kernel glob, or a family such as cuda, that must have a PASS, else exit 3")
      ->type_name("X");
  g->add_option("--require-contract", gate.require_preset, "Refuse kernels whose Contract is not this preset (glob)")
      ->type_name("PRESET");
  g->add_option("--launches", gate.launches, "Runs that the law deterministic compares with the first")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  g->add_option("--corpus", gate.corpus, "Directory of .case files to replay; 'none' for none")->type_name("DIR");
  g->add_option("--waivers", gate.waivers, "Ledger of known failures: kernel, law, reason, expires")->type_name("FILE");
  g->add_option("--out", gate.out, "Where failing .case files go")->type_name("DIR")->capture_default_str();
  g->add_option("--json", gate.json, "Write the report as JSON; '-' for standard output")->type_name("FILE");
  g->add_option("--junit", gate.junit, "Write the report as JUnit XML")->type_name("FILE");
  g->add_flag("--quiet", gate.quiet, "Only failures and the verdict");
  add_isolation(*g, gate.isolation);
  add_soak(*g, options->soak, options->soaks);
  g->callback([options, &action] {
    action = [options] {
      GateOptions& gate = options->gate;
      read_shard(options->shard, gate);
      if (gate.corpus.empty()) gate.corpus = default_corpus();
      if (gate.json == "/dev/stdout") gate.json = "-";
      if (options->soaks) return run_guarded("", [&] { return run_soak(soak_of(gate, options->soak)); });
      return run_guarded(gate.json, [&] { return run_gate(gate); });
    };
  });
}

void add_check(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CheckOptions>();
  CheckOptions& check = *options;
  CLI::App* c = app.add_subcommand("check", "One .case: truth, bound, output and verdict, element by element");
  c->footer(std::string("\nExample:\n  attest check attest-failures/x.case --kernels 'cpu.fa2.*' --all\n") +
            exit_codes);
  c->add_option("FILE", check.file, "The case")->required();
  add_selection(*c, check.selection, true);
  c->add_flag("--all", check.all, "Every element, not only the worst ten");
  c->add_option("--launches", check.launches, "Runs that the law deterministic compares with the first")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  add_isolation(*c, check.isolation);
  c->callback(
      [options, &action] { action = [options] { return run_guarded("", [&] { return run_check(*options); }); }; });
}

}  // namespace attest
