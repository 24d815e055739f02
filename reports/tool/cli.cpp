// The command line as a whole. What it says in --help is tested: every example there runs.
#include "reports/tool/cli.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "reports/tool/guard.h"
#include "reports/tool/listing.h"
#include "reports/tool/text.h"

namespace attest {

const char* const exit_codes = R"(
Exit codes: 0 pass; 1 a failure; 2 usage or bad input; 3 no failure, but something required has no PASS.)";

namespace {

constexpr const char* about = R"(Attest decides whether an attention kernel is right.

Start with:
  attest gate                                every kernel, every law
  attest gate --plugin ./libmine.so          your own kernels
  attest check FILE.case                     one case, explained element by element
  attest gate --help                         more)";

void add_kernels(CLI::App& app, Action& action) {
  const auto kernels = std::make_shared<Selection>();
  const auto contract = std::make_shared<std::string>();
  CLI::App* k = app.add_subcommand("kernels", "The kernels: name, operation, Contract, promises");
  add_selection(*k, *kernels, false);
  k->add_option("--contract", *contract, "Print every constant of this kernel's or preset's Contract, with its source")
      ->type_name("NAME");
  k->callback([=, &action] {
    action = [=] {
      return run_guarded(
          "", [&] { return contract->empty() ? list_kernels(*kernels) : show_contract(*kernels, *contract); });
    };
  });
}

void add_new_plugin(CLI::App& app, Action& action) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* n = app.add_subcommand("new-plugin", "Write a buildable skeleton for a kernel of your own");
  n->add_option("DIR", *directory, "A new or empty directory")->required();
  n->callback([=, &action] { action = [=] { return new_plugin(*directory); }; });
}

}  // namespace

void add_selection(CLI::App& app, Selection& s, bool with_laws) {
  app.add_option("--kernels", s.kernels, "Kernels to work on (globs). Default: all; with --plugin, the plugins' alone")
      ->type_name("GLOB");
  if (with_laws) app.add_option("--laws", s.laws, "Laws to check (globs). Default: all")->type_name("GLOB");
  app.add_option("--plugin", s.plugins, "A shared library with kernels of your own (repeatable)")->type_name("LIB.so");
  app.add_option("--device", s.device, "Kernels of this device alone: cpu, cuda or all")
      ->check(CLI::IsMember({"cpu", "cuda", "all"}))
      ->capture_default_str();
  app.add_flag("--variants", s.variants, "Correct kernels that compute differently too; with --plugin, all kernels");
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
  app.footer(exit_codes);
  Action action;
  add_gate(app, action);
  add_check(app, action);
  add_kernels(app, action);
  app.add_subcommand("laws", "The laws: name and statement")->callback([&action] { action = list_laws; });
  add_mutants(app, action);
  add_field(app, action);
  add_hunt(app, action);
  add_fuzz(app, action);
  add_calibrate(app, action);
  add_bench(app, action);
  add_new_plugin(app, action);

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

}  // namespace attest
