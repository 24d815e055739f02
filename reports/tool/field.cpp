#include "reports/tool/field.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "properties/check.h"
#include "reports/tool/plan.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

// Our laws in the gate's order, until one fails. The corpus is for the mutants: `attest mutants` replays it with the
// controls too.
void ask_laws(FieldRow& row, const std::vector<const Law*>& laws, const std::vector<CorpusCase>& corpus,
              const FieldOptions& options) {
  const Kernel& kernel = row.kernel.kernel;
  const double lambda = lambda_for(0);
  const auto fails = [&](const Law& law, const Case& c, const std::string& name) {
    const CheckResult r = check_case(c, kernel, law, context_for(c, lambda));
    row.checks += r.outcome != Outcome::rejected;
    if (r.outcome != Outcome::fail) return false;
    row.law = law.name, row.finding = name + ": " + describe(r);
    return true;
  };
  for (int index = 0; index < options.cases; ++index) {
    for (const Law* law : laws) {
      const Case c = generated_case(kernel, *law, options.seed, index);
      if (law->why_not(c, kernel).empty() && fails(*law, c, "generated " + std::to_string(index))) return;
    }
    // Whole model layers take seconds each in kernels written to be read.
    const auto is_large = [](const Case& c) {
      return static_cast<double>(c.shape.batch * c.shape.q_heads) * static_cast<double>(c.shape.tq * c.shape.tk) > 1e5;
    };
    for (const CorpusCase& c : corpus)
      for (const Law* law : laws)
        if (index == 0 && row.mutant && !is_large(c.data) && concerns(c.data, kernel, *law) &&
            fails(*law, c.data, c.name))
          return;
  }
}

std::vector<FieldRow> make_rows(const FieldOptions& options) {
  std::vector<FieldRow> rows;
  std::vector<Kernel> controls = mutants::control_kernels(), planted = mutants::mutant_kernels();
  rows.reserve(controls.size() + planted.size());  // rows point at each other
  for (Kernel& k : controls) rows.emplace_back().kernel.kernel = std::move(k);
  for (FieldRow& r : rows) r.correct = &r.kernel.kernel;
  const std::size_t first = rows.size();
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const mutants::Mutant& m = mutants::table()[i];
    if (!matches_any(options.mutants, m.name)) continue;
    FieldRow& r = rows.emplace_back();
    r.kernel.kernel = std::move(planted[i]);
    r.mutant = &m;
    for (std::size_t c = 0; c < first; ++c)
      if (rows[c].kernel.kernel.contract_name == m.preset) r.correct = &rows[c].kernel.kernel;
  }
  if (rows.size() == first)
    throw UsageError("no mutant matches --mutants; `" + tool_command() + " mutants --cases 1` prints their names");
  return rows;
}

}  // namespace

int run_field(const FieldOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<const Law*> laws = select_laws({});
  std::vector<CorpusCase> corpus;
  if (!options.corpus.empty() && options.corpus != "none") corpus = load_corpus(options.corpus);
  FieldResult result;
  result.rows = make_rows(options);
  const field::Examiner examiner(options.seed, options.seeds);
  const bool live = !options.quiet && isatty(STDERR_FILENO);

  std::atomic<std::size_t> next{0}, done{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < result.rows.size(); i = next++) {
      FieldRow& row = result.rows[i];
      for (const field::Project& p : field::projects())
        row.opinions.push_back(examiner.ask(p, row.kernel.kernel, row.correct));
      ask_laws(row, laws, corpus, options);
      if (live) std::fprintf(stderr, "\r%zu of %zu kernels judged\x1b[K", ++done, result.rows.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    const int jobs =
        options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
  }
  if (live) std::fputs("\r\x1b[K", stderr);
  for (const field::Project& p : field::projects()) result.broken.push_back(field::acceptances(p, options.seed));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const bool pass = std::all_of(result.rows.begin(), result.rows.end(),
                                [](const FieldRow& r) { return r.law.empty() == (r.mutant == nullptr); });
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  if (!options.json.empty()) write_whole(options.json, field_json(result, options));
  if (!options.markdown.empty()) write_whole(options.markdown, field_markdown(result, options));
  if (!options.quiet) out << field_text(result);
  for (const FieldRow& r : result.rows) {
    if (r.law.empty() == (r.mutant == nullptr)) continue;
    out << (r.mutant ? "SURVIVES " : "FALSE ALARM ") << r.kernel.kernel.name << (r.mutant ? "" : ": " + r.law) << "\n";
  }
  out << text("%s  seed %llu, %d sets of values, %.0f seconds\n", pass ? "PASS" : "FAIL",
              static_cast<unsigned long long>(options.seed), options.seeds, result.seconds)
      << std::flush;
  return pass ? 0 : 1;
}

}  // namespace attest
