#include "reports/tool/kill_matrix.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <thread>

#include "properties/check.h"
#include "properties/variants/variants.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using mutants::Mutant;

// Of this thread, which judges one kernel at a time.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Whole model layers: seconds each in a kernel written to be read. They count until the first kill, and not after it.
// Of the controls only those judge them that share the mutants' code; the variants meet them in `gate --soak`.
bool is_large(const Case& c) {
  const Shape& s = c.shape;
  return static_cast<double>(s.batch * s.q_heads) * static_cast<double>(s.tq) * static_cast<double>(s.tk) > 1e5;
}

}  // namespace

// Index by index over all laws with the corpus after the first round. A law that has killed is not asked again; the
// rest go on to the end of the budget, so that the matrix is whole.
void judge_kernel(KillRow& row, const std::vector<const Law*>& laws, int cases, std::uint64_t seed, double lambda,
                  const Watch& watch) {
  const double start = processor_seconds();
  const Kernel& kernel = row.kernel.kernel;
  std::int64_t checks = 0;
  bool ended = false;
  const auto check = [&](std::size_t law, const Case& c, const std::string& name) {
    Cell& cell = row.cells[law];
    if (ended || cell.killed || !laws[law]->why_not(c, kernel).empty()) return;
    watch.before(*laws[law], name);
    const CheckResult r = check_case(c, kernel, *laws[law], context_for(c, lambda));
    if (r.outcome == Outcome::rejected) return;
    ++cell.checks, ++checks;
    if (r.outcome != Outcome::fail) return;
    cell.killed = true;
    cell.killing_case = name;
    ended = watch.ended();
    if (row.killed()) return;
    row.first_law = laws[law]->name;
    row.first_case = name;
    row.checks_to_kill = checks;
    row.seconds_to_kill = processor_seconds() - start;
    row.reason = describe(r);
  };
  for (int index = 0; index < cases && !ended; ++index) {
    for (std::size_t law = 0; law < laws.size(); ++law) {
      if (ended || row.cells[law].killed) continue;
      check(law, generated_case(kernel, *laws[law], seed, index), "generated " + std::to_string(index));
    }
    if (index > 0) continue;
    for (const auto& [c, law] : row.replay) {
      if (!row.cells[law].killed && !(row.killed() && is_large(c->data))) check(law, c->data, c->name);
    }
  }
}

KillRow make_row(Kernel kernel, const Mutant* mutant, const std::vector<const Law*>& laws,
                 const std::vector<CorpusCase>& corpus, bool with_large) {
  KillRow r;
  r.kernel.kernel = std::move(kernel);
  r.mutant = mutant;
  r.cells.resize(laws.size());
  for (const CorpusCase& c : corpus) {
    if (!with_large && is_large(c.data)) continue;
    for (std::size_t law = 0; law < laws.size(); ++law)
      if (concerns(c.data, r.kernel.kernel, *laws[law])) r.replay.emplace_back(&c, law);
  }
  return r;
}

namespace {

std::vector<KillRow> make_rows(const MutantOptions& options, const std::vector<const Law*>& laws,
                               const std::vector<CorpusCase>& corpus) {
  std::vector<KillRow> rows;
  const auto add = [&](Kernel& k, const Mutant* m, bool with_large = true) {
    rows.push_back(make_row(std::move(k), m, laws, corpus, with_large));
  };
  for (Kernel& k : mutants::control_kernels()) add(k, nullptr);
  for (Kernel& k : variants::variant_kernels()) add(k, nullptr, false);
  const std::size_t controls = rows.size();
  std::vector<Kernel> planted = mutants::mutant_kernels();
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const Mutant& m = mutants::table()[i];
    if (matches_any(options.mutants, m.name)) add(planted[i], &m);
  }
  if (rows.size() == controls)
    throw UsageError("no mutant matches --mutants; `" + tool_command() + " mutants --cases 1` prints their names");
  return rows;
}

}  // namespace

void count(KillMatrix& m, double most_seconds) {
  m.planted = m.killed = m.alarms = m.late = m.not_run = 0;
  std::vector<double> seconds;
  for (const KillRow& r : m.rows) {
    if (!r.mutant) {
      m.alarms += r.killed();
      continue;
    }
    ++m.planted;
    m.not_run += !r.not_run.empty();
    if (!r.killed()) continue;
    ++m.killed;
    m.late += r.seconds_to_kill > most_seconds;
    seconds.push_back(r.seconds_to_kill);
  }
  std::sort(seconds.begin(), seconds.end());
  if (seconds.empty()) return;
  m.median_seconds = seconds[seconds.size() / 2];
  m.most_seconds = seconds.back();
}

int KillMatrix::kills_of(std::size_t law) const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [&](const KillRow& r) { return r.mutant && r.cells[law].killed; }));
}

std::vector<const Mutant*> KillMatrix::only_killer_of(std::size_t law) const {
  std::vector<const Mutant*> out;
  for (const KillRow& r : rows) {
    if (!r.mutant || !r.cells[law].killed) continue;
    if (std::count_if(r.cells.begin(), r.cells.end(), [](const Cell& c) { return c.killed; }) == 1)
      out.push_back(r.mutant);
  }
  return out;
}

KillMatrix fill_matrix(const MutantOptions& options, const std::vector<CorpusCase>& corpus, std::uint64_t seed) {
  KillMatrix m;
  m.seed = seed;
  m.laws = select_laws(options.laws);
  m.rows = make_rows(options, m.laws, corpus);
  const double lambda = lambda_for(0);
  const bool live = !options.quiet && isatty(STDERR_FILENO);
  std::atomic<std::size_t> next{0}, done{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < m.rows.size(); i = next++) {
      judge_kernel(m.rows[i], m.laws, options.cases, seed, lambda);
      if (live)
        std::fprintf(stderr, "\rseed %llu: %zu of %zu kernels judged\x1b[K", static_cast<unsigned long long>(seed),
                     ++done, m.rows.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    const int jobs =
        options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
  }
  if (live) std::fputs("\r\x1b[K", stderr);
  count(m, options.seconds);
  return m;
}

}  // namespace attest
