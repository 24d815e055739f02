// mutants, field and hunt: what judges the gate itself.
#include <CLI/CLI.hpp>
#include <memory>

#include "reports/tool/cli.h"
#include "reports/tool/field.h"
#include "reports/tool/guard.h"
#include "reports/tool/hunt.h"
#include "reports/tool/mutants.h"

namespace attest {

void add_mutants(CLI::App& app, Action& action) {
  const auto options = std::make_shared<MutantOptions>();
  MutantOptions& mutants = *options;
  CLI::App* m = app.add_subcommand("mutants", "The kill matrix: planted bugs x laws, with the gate's own budget");
  m->footer(
      std::string("\nExamples:\n  attest mutants\n  attest mutants --mutants 'split-*' --cases 4 --seeds 1,2,3\n") +
      "\nExit codes: 0 every mutant is killed in time, every control passes, over three seeds and more every law earns "
      "its "
      "place; 1 not so; 2 usage or bad input.");
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

}  // namespace attest
