// fuzz: its options, and what its --help says.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "reports/tool/cli.h"
#include "reports/tool/fuzz/fuzz.h"
#include "reports/tool/guard.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr const char* fuzz_help = R"(
Coverage-guided search over shapes, masks, block sizes and values, for as long as you like: workers share a folder of
inputs, which a later campaign goes on with. A finding is saved as a .case that `attest check` shows again, with a line
that says where it comes from. What search finds is judged by the deterministic tier and the bitwise laws.

The targets are built with clang (`./attest fuzz` does that): build/fuzz/bin/fuzz_*, under ASan and UBSan. --engine afl
searches with afl-fuzz on build/afl/bin/fuzz_*, which have no sanitizer.

Examples:
  attest fuzz --seconds 600                          ten minutes, all targets in turn
  attest fuzz --target forward --kernels 'cpu.fa2.*' --jobs 8
  attest fuzz --target case --corpus corpus/fuzz --stored none --seconds 60
  attest fuzz --engine afl --target forward --seconds 600
  attest fuzz --mutants --markdown race.md           how fast each planted bug is found from nothing
  attest fuzz --target cuda --bin build/fuzz-cuda/bin --jobs 4       the CUDA kernels, on a machine with a device

Exit codes: 0 nothing was found (with --mutants: every mutant, nine of ten within a minute); 1 a finding (a mutant was
missed, or too many are late); 2 usage; 3 a target could not do its work.)";

std::string beside_this_tool() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

}  // namespace

void add_fuzz(CLI::App& app, Action& action) {
  const auto options = std::make_shared<FuzzOptions>();
  FuzzOptions& o = *options;
  CLI::App* f = app.add_subcommand("fuzz", "Coverage-guided campaigns over the fuzz targets");
  f->footer(fuzz_help);
  f->add_option("--target", o.targets, "Targets (globs): forward, decode, step, merge, schedule, case, verdict, cuda")
      ->type_name("T");
  f->add_option("--engine", o.engine, "What searches: libfuzzer, or afl (AFL++, on targets of the preset afl)")
      ->capture_default_str()
      ->check(CLI::IsMember({"libfuzzer", "afl"}));
  f->add_option("--seconds", o.seconds,
                "Length of the campaign, or of each mutant's search. Default: until Ctrl-C; 600")
      ->check(seconds_fault, "", "");
  f->add_option("--jobs", o.jobs, "Workers at a time. Default: one for each core")->check(CLI::Range(1, 256));
  f->add_option("--kernels", o.kernels, "Kernels to search (globs). Default: all that a target has")->type_name("GLOB");
  f->add_option("--corpus", o.corpus, "The campaign: inputs in DIR/TARGET, log.jsonl, findings")
      ->type_name("DIR")
      ->capture_default_str();
  const auto* stored =
      f->add_option("--stored", o.stored, "Inputs to begin with, in DIR/TARGET; or none. Default: those of the corpus")
          ->type_name("DIR");
  const auto* findings =
      f->add_option("--findings", o.findings, "Where .case files of findings go. Default: corpus/regressions")
          ->type_name("DIR");
  const auto* bin = f->add_option("--bin", o.bin, "Where the targets are. Default: beside this tool")->type_name("DIR");
  f->add_option("--seed", o.seed, "Seed of the workers")->capture_default_str()->check(seed_fault, "", "");
  f->add_flag("--keep-all", o.keep_all, "Do not minimise the inputs at the end");
  const auto* race = f->add_option("--mutants", o.mutants, "The race: find each planted bug from an empty corpus")
                         ->type_name("GLOB")
                         ->expected(0, -1);
  f->add_option("--markdown", o.markdown, "The race: write the table as Markdown")->type_name("FILE");
  f->add_flag("--quiet", o.quiet, "No progress");
  f->callback([=, &action] {
    FuzzOptions& o = *options;
    const std::string corpus = default_corpus();
    if (stored->count() == 0 && corpus != "none") o.stored = corpus + "/fuzz";
    if (findings->count() == 0) o.findings = corpus == "none" ? o.corpus : corpus + "/regressions";
    if (bin->count() == 0) o.bin = beside_this_tool();
    o.race = race->count() > 0;
    // Without a glob CLI11 stores a word of its own.
    std::erase_if(o.mutants, [](const std::string& glob) { return glob.empty() || glob == "{}" || glob == "true"; });
    action = [options] {
      return run_guarded("", [&] { return options->race ? run_fuzz_race(*options) : run_fuzz(*options); });
    };
  });
}

}  // namespace attest
