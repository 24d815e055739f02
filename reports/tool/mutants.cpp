#include "reports/tool/mutants.h"

#include <iostream>

#include "reports/tool/mutants_device.h"
#include "reports/tool/mutants_report.h"
#include "reports/tool/text.h"

namespace attest {

int run_mutants(const MutantOptions& options) {
  if (options.seeds.empty()) throw UsageError("--seeds names no seed");
  std::vector<CorpusCase> corpus;
  if (!options.corpus.empty() && options.corpus != "none") corpus = load_corpus(options.corpus);
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  const bool on_device = options.device == "cuda";
  if (on_device && !options.one.empty()) return run_device_part(options, corpus);
  if (on_device) {
    if (const std::string why = why_no_device_mutants(options); !why.empty()) {
      out << why;
      return options.require_cuda ? 3 : 0;
    }
  }
  // Of a part of the matrix nothing can be said about the worth of laws, nor of one seed: what laws see overlaps by
  // chance. The GPU mutants are such a part.
  const bool whole = !on_device && options.mutants.empty() && options.laws.empty() && options.seeds.size() >= 3;

  std::vector<KillMatrix> runs;
  std::string lines;
  bool pass = true, all_ran = true;
  if (on_device) runs = fill_device_matrices(options);
  for (std::size_t n = 0; n < options.seeds.size(); ++n) {
    if (!on_device) runs.push_back(fill_matrix(options, corpus, options.seeds[n]));
    const KillMatrix& m = runs[n];
    const bool good = m.killed + m.not_run == m.planted && m.alarms == 0 && m.late == 0;
    all_ran &= m.not_run == 0;
    pass &= good;
    lines += verdict_line(m, good);
    if (!options.quiet) out << matrix_text(m) << "\n";
    out << problems_text(m, options.seconds) << std::flush;
  }
  // Of GPU mutants the first seed's matrix alone is whole.
  const std::vector<LawWorth> laws = worth_of_laws(on_device ? std::vector<KillMatrix>{runs.front()} : runs);
  if (!options.quiet) out << laws_text(laws) << "\n";
  for (const LawWorth& w : laws) {
    if (!whole || w.fault().empty()) continue;
    pass = false;
    out << "LAW " << w.fault() << "\n";
  }
  if (!options.json.empty()) write_whole(options.json, matrix_json(runs, laws, options, pass));
  if (!options.markdown.empty()) write_whole(options.markdown, matrix_markdown(runs, laws, options, pass));
  out << lines << std::flush;
  return !pass ? 1 : options.require_cuda && !all_ran ? 3 : 0;
}

}  // namespace attest
