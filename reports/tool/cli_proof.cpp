// mutants, field and hunt: what judges the gate itself; calibrate: what its bounds rest on.
#include <CLI/CLI.hpp>
#include <memory>

#include "reports/tool/calibrate.h"
#include "reports/tool/cli.h"
#include "reports/tool/field.h"
#include "reports/tool/guard.h"
#include "reports/tool/hunt.h"
#include "reports/tool/mutants.h"

namespace attest {
namespace {

constexpr const char* calibrate_help = R"(
A bound is only as good as its constants. This command measures them on the current CUDA device and holds every CUDA
Contract to them:
  exp_error, rescale_exp_error, log_relative, division_error
      all 2^32 inputs of the special functions that the kernels call, and of those that they could, against fp64;
      the worst inputs are computed again at 200 bits
  mma_terms, mma_fraction_bits
      random dot products of mma.sync and wgmma, bit for bit beside the model of their accumulation, over inputs from
      ordinary to extreme; other models must miss
  and that exp2(0) is 1, what is flushed to 0, that P is rounded to nearest even, that no NaN or infinity appears.

Examples:
  attest calibrate
  attest calibrate --dots 1000000 --quiet
  attest calibrate --json calibrate.json --markdown calibrate.md

Exit codes: 0 every claim holds, or there is no device; 1 a Contract claims less than was measured; 2 usage or bad
input; 3 a device is required and there is none.)";

}  // namespace

void add_mutants(CLI::App& app, Action& action) {
  const auto options = std::make_shared<MutantOptions>();
  MutantOptions& mutants = *options;
  CLI::App* m = app.add_subcommand("mutants", "The kill matrix: planted bugs x laws, with the gate's own budget");
  m->footer(
      std::string("\nExamples:\n  attest mutants\n  attest mutants --mutants 'split-*' --cases 4 --seeds 1,2,3\n") +
      "  attest mutants --device cuda                    the GPU mutants; those that results do not show are judged "
      "by\n"
      "                                                  compute-sanitizer\n" +
      "\nExit codes: 0 every mutant is killed in time, every control passes, over three seeds and more every law earns "
      "its place; 1 not so; 2 usage or bad input; 3 --require cuda, and a GPU mutant is NOT_RUN.");
  m->add_option("--mutants", mutants.mutants, "Mutants to judge (globs). Default: all")->type_name("GLOB");
  m->add_option("--laws", mutants.laws, "Laws to check (globs). Default: all")->type_name("GLOB");
  m->add_option("--seed,--seeds", mutants.seeds, "Seeds of everything random: one matrix for each")
      ->capture_default_str()
      ->delimiter(',')
      ->check(seed_fault, "", "");
  m->add_option("--cases", mutants.cases, "Generated cases for each mutant and law (the gate's budget)")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  m->add_option("--corpus", mutants.corpus, "Directory of .case files to replay; 'none' for none")->type_name("DIR");
  m->add_option("--jobs", mutants.jobs, "Threads that check. Default: one for each core")->check(CLI::Range(1, 256));
  m->add_option("--seconds", mutants.seconds, "Longest that a kill may take, in processor time")
      ->capture_default_str()
      ->check(seconds_fault, "", "");
  m->add_option("--json", mutants.json, "Write the matrix as JSON; '-' for standard output")->type_name("FILE");
  m->add_option("--markdown", mutants.markdown, "Write the matrix as Markdown")->type_name("FILE");
  m->add_flag("--quiet", mutants.quiet, "Only survivors, false alarms and the verdict");
  m->add_option("--device", mutants.device, "Mutants of this device: cpu, or cuda, each in processes of its own")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  m->add_option_function<std::string>(
       "--require", [&mutants](const std::string&) { mutants.device = "cuda", mutants.require_cuda = true; },
       "cuda: --device cuda, and exit 3 where a GPU mutant is NOT_RUN")
      ->check(CLI::IsMember({"cuda"}))
      ->type_name("DEVICE");
  m->add_option("--limit-seconds", mutants.limit_seconds, "GPU: longest that one check may take")
      ->capture_default_str()
      ->check(seconds_fault, "", "");
  m->add_option(
       "--one", mutants.one,
       "GPU: one mutant or control in this process, for a debugger; PART is laws, kill, corpus, targeted or launch")
      ->type_name("PART:NAME");
  m->callback([options, &action] {
    action = [options] {
      MutantOptions& mutants = *options;
      if (mutants.corpus.empty()) mutants.corpus = default_corpus();
      if (mutants.json == "/dev/stdout") mutants.json = "-";
      return run_mutants(mutants);
    };
  });
}

void add_field(CLI::App& app, Action& action) {
  const auto options = std::make_shared<FieldOptions>();
  FieldOptions& field = *options;
  CLI::App* f = app.add_subcommand("field", "Beside the field: planted bugs under other projects' pass criteria");
  f->footer(std::string("\nExamples:\n  attest field\n  attest field --mutants 'split-*' --seeds 1 --cases 1\n") +
            "\nExit codes: 0 our laws kill every mutant and pass every control; 1 not so; 2 usage or bad input.");
  f->add_option("--mutants", field.mutants, "Mutants to judge (globs). Default: all")->type_name("GLOB");
  f->add_option("--seed", field.seed, "Seed of everything random")->capture_default_str()->check(seed_fault, "", "");
  f->add_option("--seeds", field.seeds, "Sets of values for each of the projects' tests")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  f->add_option("--cases", field.cases, "Generated cases for each mutant and law of ours")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  f->add_option("--corpus", field.corpus, "Directory of .case files to replay; 'none' for none")->type_name("DIR");
  f->add_option("--jobs", field.jobs, "Threads that check. Default: one for each core")->check(CLI::Range(1, 256));
  f->add_option("--json", field.json, "Write the table as JSON; '-' for standard output")->type_name("FILE");
  f->add_option("--markdown", field.markdown, "Write the table with the criteria and their sources")->type_name("FILE");
  f->add_flag("--quiet", field.quiet, "Only survivors, false alarms and the verdict");
  f->callback([options, &action] {
    action = [options] {
      FieldOptions& field = *options;
      if (field.corpus.empty()) field.corpus = default_corpus();
      if (field.json == "/dev/stdout") field.json = "-";
      return run_field(field);
    };
  });
}

void add_hunt(CLI::App& app, Action& action) {
  const auto options = std::make_shared<HuntCommand>();
  HuntCommand& hunt = *options;
  CLI::App* h = app.add_subcommand("hunt", "Climb to the worst error/bound of a kernel; keep its worst case");
  h->footer(std::string("\nExample:\n  attest hunt 'cpu.*' --evaluations 2000 --worst none\n") + exit_codes);
  h->add_option("KERNEL", hunt.selection.kernels, "Kernels (globs)")->required();
  h->add_option("--plugin", hunt.selection.plugins, "A shared library with kernels of your own (repeatable)")
      ->type_name("LIB.so");
  h->add_option("--seed", hunt.seed, "Seed of everything random")->capture_default_str()->check(seed_fault, "", "");
  h->add_option("--evaluations", hunt.evaluations, "Runs of each kernel (the budget)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  h->add_option("--seconds", hunt.seconds, "Stop after so long; the result is marked truncated")
      ->check(seconds_fault, "", "");
  h->add_option("--jobs", hunt.jobs, "Kernels hunted at a time. Default: one for each core")->check(CLI::Range(1, 256));
  h->add_option("--worst", hunt.worst, "Directory of worst cases: read, and written where a worse is found; or none")
      ->type_name("DIR");
  h->add_option("--out", hunt.out, "Where cases outside of their bound go")->type_name("DIR")->capture_default_str();
  h->add_option("--markdown", hunt.markdown, "Write the table as Markdown")->type_name("FILE");
  h->add_flag("--stored", hunt.stored, "Measure O as stored instead of before output rounding");
  h->callback([options, &action] {
    action = [options] {
      HuntCommand& hunt = *options;
      // The corpus of this tree is for its own kernels.
      if (hunt.worst.empty())
        hunt.worst = !hunt.selection.plugins.empty() || default_corpus() == "none" ? "attest-worst"
                                                                                   : default_corpus() + "/worst";
      return run_guarded("", [&] { return run_hunt(hunt); });
    };
  });
}

void add_calibrate(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CalibrateOptions>();
  CalibrateOptions& o = *options;
  CLI::App* c = app.add_subcommand("calibrate", "Measure the constants of the CUDA Contracts on this device");
  c->footer(calibrate_help);
  c->add_option("--seed", o.seed, "Seed of the random dot products")->capture_default_str()->check(seed_fault, "", "");
  c->add_option("--dots", o.dots, "Random dot products for each instruction and kind of input; chains get a quarter")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  c->add_option("--require", o.require, "cuda: without a device exit 3")->check(CLI::IsMember({"cuda"}));
  c->add_option("--json", o.json, "Write the result as JSON; '-' for standard output")->type_name("FILE");
  c->add_option("--markdown", o.markdown, "Write the tables as Markdown")->type_name("FILE");
  c->add_flag("--quiet", o.quiet, "Only the constants and the verdict");
  c->callback([options, &action] {
    action = [options] {
      if (options->json == "/dev/stdout") options->json = "-";
      return run_calibrate(*options);
    };
  });
}

}  // namespace attest
