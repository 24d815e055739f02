#include "reports/tool/mutants.h"

#include <iostream>

#include "reports/tool/mutants_report.h"
#include "reports/tool/text.h"

namespace attest {

int run_mutants(const MutantOptions& options) {
  if (options.seeds.empty()) throw UsageError("--seeds names no seed");
  std::vector<CorpusCase> corpus;
  if (!options.corpus.empty() && options.corpus != "none") corpus = load_corpus(options.corpus);
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  // Of a part of the matrix nothing can be said about the worth of laws, nor of one seed: what laws see overlaps by
  // chance.
  const bool whole = options.mutants.empty() && options.laws.empty() && options.seeds.size() >= 3;

  std::vector<KillMatrix> runs;
  std::string lines;
  bool pass = true;
  for (const std::uint64_t seed : options.seeds) {
    const KillMatrix& m = runs.emplace_back(fill_matrix(options, corpus, seed));
    const bool good = m.killed == m.planted && m.alarms == 0 && m.late == 0;
    pass &= good;
    lines += verdict_line(m, good);
    if (!options.quiet) out << matrix_text(m) << "\n";
    out << problems_text(m, options.seconds) << std::flush;
  }
  const std::vector<LawWorth> laws = worth_of_laws(runs);
  if (!options.quiet) out << laws_text(laws) << "\n";
  for (const LawWorth& w : laws) {
    if (!whole || w.fault().empty()) continue;
    pass = false;
    out << "LAW " << w.fault() << "\n";
  }
  if (!options.json.empty()) write_whole(options.json, matrix_json(runs, laws, options, pass));
  if (!options.markdown.empty()) write_whole(options.markdown, matrix_markdown(runs, laws, options, pass));
  out << lines << std::flush;
  return pass ? 0 : 1;
}

}  // namespace attest
