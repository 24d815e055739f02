#include "reports/tool/mutants.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "properties/check.h"
#include "properties/mutants/mutants.h"
#include "reports/tool/plan.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
using mutants::Mutant;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One cell of the matrix: a mutant under a law.
struct Cell {
  std::int64_t checks = 0;  // until the kill, or all that the budget holds
  bool killed = false;
};

// One row: what the gate would have seen of this kernel, in the gate's order.
struct KillRow {
  LoadedKernel kernel;
  const Mutant* mutant = nullptr;                                 // nullptr: a control
  std::vector<Cell> cells;                                        // by law
  std::vector<std::pair<const CorpusCase*, std::size_t>> replay;  // corpus cases with the laws that they concern
  std::string first_law, first_case;
  std::int64_t checks_to_kill = 0;
  double seconds_to_kill = 0, seconds = 0;
  std::string reason;  // what the first finding said
  bool killed() const { return !first_law.empty(); }
};

// Whole model layers: seconds each in a kernel written to be read. They count until the first kill, and not after it.
bool is_large(const Case& c) {
  const Shape& s = c.shape;
  return static_cast<double>(s.batch * s.q_heads) * static_cast<double>(s.tq) * static_cast<double>(s.tk) > 1e5;
}

// Checks in the gate's order, index by index over all laws with the corpus after the first round. A law that has killed
// is not asked again; the rest go on to the end of the budget, so that the matrix is whole.
void judge_kernel(KillRow& row, const std::vector<const Law*>& laws, const MutantOptions& options, double lambda) {
  const Clock::time_point start = Clock::now();
  const Kernel& kernel = row.kernel.kernel;
  std::int64_t checks = 0;
  const auto check = [&](std::size_t law, const Case& c, const std::string& name) {
    Cell& cell = row.cells[law];
    if (cell.killed || !laws[law]->why_not(c, kernel).empty()) return;
    const CheckResult r = check_case(c, kernel, *laws[law], context_for(c, lambda));
    if (r.outcome == Outcome::rejected) return;
    ++cell.checks, ++checks;
    if (r.outcome != Outcome::fail) return;
    cell.killed = true;
    if (row.killed()) return;
    row.first_law = laws[law]->name;
    row.first_case = name;
    row.checks_to_kill = checks;
    row.seconds_to_kill = seconds_since(start);
    row.reason = describe(r);
  };
  for (int index = 0; index < options.cases; ++index) {
    for (std::size_t law = 0; law < laws.size(); ++law) {
      if (row.cells[law].killed) continue;
      check(law, generated_case(kernel, *laws[law], options.seed, index), "generated " + std::to_string(index));
    }
    if (index > 0) continue;
    for (const auto& [c, law] : row.replay) {
      if (!row.cells[law].killed && !(row.killed() && is_large(c->data))) check(law, c->data, c->name);
    }
  }
  row.seconds = seconds_since(start);
}

std::vector<KillRow> make_rows(const MutantOptions& options, const std::vector<const Law*>& laws,
                               const std::vector<CorpusCase>& corpus) {
  std::vector<KillRow> rows;
  const auto add = [&](Kernel& k, const Mutant* m) {
    KillRow& r = rows.emplace_back();
    r.kernel.kernel = std::move(k);
    r.mutant = m;
    r.cells.resize(laws.size());
    for (const CorpusCase& c : corpus) {
      for (std::size_t law = 0; law < laws.size(); ++law)
        if (concerns(c.data, r.kernel.kernel, *laws[law])) r.replay.emplace_back(&c, law);
    }
  };
  for (Kernel& k : mutants::control_kernels()) add(k, nullptr);
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

std::string matrix(const std::vector<KillRow>& rows, const std::vector<const Law*>& laws) {
  std::string out = "laws:";
  for (std::size_t l = 0; l < laws.size(); ++l)
    out += text(" %zu %s", l + 1, std::string(laws[l]->name).c_str()) + (l + 1 < laws.size() ? "," : "\n");
  out += "x killed, . every check passed, blank: the law does not bind\n\n";
  out += text("%-30s", "mutant");
  for (std::size_t l = 0; l < laws.size(); ++l) out += text("%3zu", l + 1);
  out += text("  %-18s %7s %8s  %s\n", "first law", "checks", "seconds", "bug");
  for (const KillRow& r : rows) {
    out += text("%-30s", (r.mutant ? std::string(r.mutant->name) : r.kernel.kernel.name).c_str());
    for (const Cell& c : r.cells) out += c.killed ? "  x" : c.checks > 0 ? "  ." : "   ";
    const char* none = r.mutant ? "SURVIVES" : "passes";
    out += text("  %-18s %7lld %8.3f  %s\n", r.killed() ? r.first_law.c_str() : none,
                static_cast<long long>(r.checks_to_kill), r.seconds_to_kill,
                r.mutant ? std::string(r.mutant->description).c_str() : "control: no bug");
  }
  return out;
}

// For each law, how many mutants it kills and which of them only it kills: what the gate would lose without it.
std::string by_law(const std::vector<KillRow>& rows, const std::vector<const Law*>& laws) {
  std::string out = text("\n%-20s %6s  %s\n", "law", "kills", "the only killer of");
  for (std::size_t l = 0; l < laws.size(); ++l) {
    int kills = 0;
    std::string only;
    for (const KillRow& r : rows) {
      if (!r.mutant || !r.cells[l].killed) continue;
      ++kills;
      const auto others = std::count_if(r.cells.begin(), r.cells.end(), [](const Cell& c) { return c.killed; });
      if (others == 1) only += (only.empty() ? "" : ", ") + std::string(r.mutant->name);
    }
    out += text("%-20s %6d  %s\n", std::string(laws[l]->name).c_str(), kills, only.c_str());
  }
  return out;
}

std::string as_json(const std::vector<KillRow>& rows, const std::vector<const Law*>& laws, const MutantOptions& o,
                    bool pass) {
  nlohmann::ordered_json j;
  j["schema"] = "attest-mutants/1";
  j["verdict"] = pass ? "pass" : "fail";
  j["seed"] = o.seed;
  j["cases"] = o.cases;
  for (const KillRow& r : rows) {
    nlohmann::ordered_json m;
    m["name"] = r.mutant ? std::string(r.mutant->name) : r.kernel.kernel.name;
    m["control"] = r.mutant == nullptr;
    if (r.mutant) {
      m["class"] = r.mutant->bug_class, m["bug"] = r.mutant->description, m["expected_killer"] = r.mutant->killer;
    }
    m["contract"] = r.kernel.kernel.contract_name;
    m["first_law"] = r.first_law, m["first_case"] = r.first_case, m["finding"] = r.reason;
    m["checks_to_kill"] = r.checks_to_kill, m["seconds_to_kill"] = r.seconds_to_kill;
    for (std::size_t l = 0; l < laws.size(); ++l) {
      if (r.cells[l].checks > 0)
        m["laws"][std::string(laws[l]->name)] = {{"checks", r.cells[l].checks}, {"killed", r.cells[l].killed}};
    }
    j["kernels"].push_back(m);
  }
  return j.dump(1) + "\n";
}

}  // namespace

int run_mutants(const MutantOptions& options) {
  const std::vector<const Law*> laws = select_laws(options.laws);
  std::vector<CorpusCase> corpus;
  if (!options.corpus.empty() && options.corpus != "none") corpus = load_corpus(options.corpus);
  std::vector<KillRow> rows = make_rows(options, laws, corpus);
  const double lambda = lambda_for(0);
  const bool live = !options.quiet && isatty(STDERR_FILENO);

  std::atomic<std::size_t> next{0}, done{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      judge_kernel(rows[i], laws, options, lambda);
      if (live) std::fprintf(stderr, "\r%zu of %zu kernels judged\x1b[K", ++done, rows.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    const int jobs =
        options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
  }
  if (live) std::fputs("\r\x1b[K", stderr);

  std::size_t planted = 0, killed = 0, alarms = 0;
  std::vector<double> seconds;
  std::string problems;
  for (const KillRow& r : rows) {
    if (!r.mutant) {
      if (r.killed())
        ++alarms, problems += "FALSE ALARM " + r.kernel.kernel.name + ": " + r.first_law + " on " + r.first_case +
                              ": " + r.reason + "\n";
      continue;
    }
    ++planted;
    killed += r.killed();
    if (r.killed()) seconds.push_back(r.seconds_to_kill);
    if (!r.killed())
      problems += "SURVIVES mutant." + std::string(r.mutant->name) + ": " + std::string(r.mutant->description) + "\n";
    const auto expected =
        std::find_if(laws.begin(), laws.end(), [&](const Law* l) { return l->name == r.mutant->killer; });
    if (r.killed() && expected != laws.end() && !r.cells[static_cast<std::size_t>(expected - laws.begin())].killed)
      problems += "note: mutant." + std::string(r.mutant->name) + " is killed, but not by " +
                  std::string(r.mutant->killer) + "\n";
  }
  std::sort(seconds.begin(), seconds.end());
  const bool pass = killed == planted && alarms == 0;
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  if (!options.json.empty()) write_whole(options.json, as_json(rows, laws, options, pass));
  if (!options.quiet) out << matrix(rows, laws) << by_law(rows, laws) << "\n";
  out << problems
      << text(
             "%s  seed %llu: %zu of %zu mutants killed, %zu false alarms; seconds to the kill: median %.3f, most "
             "%.3f\n",
             pass ? "PASS" : "FAIL", static_cast<unsigned long long>(options.seed), killed, planted, alarms,
             seconds.empty() ? 0.0 : seconds[seconds.size() / 2], seconds.empty() ? 0.0 : seconds.back())
      << std::flush;
  return pass ? 0 : 1;
}

}  // namespace attest
