#include "reports/tool/mutants_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/tool/text.h"

namespace attest {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

std::string under(const std::vector<std::uint64_t>& seeds) {
  std::string out = seeds.size() == 1 ? " (seed" : " (seeds";
  for (const std::uint64_t seed : seeds) out += " " + std::to_string(seed);
  return out + ")";
}

}  // namespace

std::string LawWorth::fault() const {
  if (!has_own && stays.empty())
    return name + " is the only killer of no mutant that names it, and nothing says why it stays";
  if (always_own && !stays.empty())
    return name + " has a mutant of its own and a reason to stay without one; drop the reason";
  return "";
}

std::vector<LawWorth> worth_of_laws(const std::vector<KillMatrix>& runs) {
  std::vector<LawWorth> out;
  for (std::size_t law = 0; law < runs.front().laws.size(); ++law) {
    LawWorth w;
    w.name = runs.front().laws[law]->name;
    w.stays = why_it_stays(w.name);
    // Laws overlap by chance, on the cases that a seed brings: what a law alone kills under one seed, that gate would
    // lose without it.
    std::map<const mutants::Mutant*, std::vector<std::uint64_t>> only;
    for (const KillMatrix& m : runs) {
      w.kills.push_back(m.kills_of(law));
      for (const mutants::Mutant* x : m.only_killer_of(law)) only[x].push_back(m.seed);
    }
    for (const auto& [m, seeds] : only) {
      w.only.push_back(std::string(m->name) + (seeds.size() < runs.size() ? under(seeds) : ""));
      w.has_own |= m->killer == w.name;
      w.always_own |= m->killer == w.name && seeds.size() == runs.size();
    }
    out.push_back(std::move(w));
  }
  return out;
}

std::string matrix_text(const KillMatrix& m) {
  std::string out = "laws:";
  for (std::size_t l = 0; l < m.laws.size(); ++l)
    out += text(" %zu %s", l + 1, std::string(m.laws[l]->name).c_str()) + (l + 1 < m.laws.size() ? "," : "\n");
  out += "x killed, . every check passed, blank: the law does not bind\n\n";
  out += text("%-30s", "mutant");
  for (std::size_t l = 0; l < m.laws.size(); ++l) out += text("%3zu", l + 1);
  out += text("  %-18s %7s %8s  %s\n", "first law", "checks", "seconds", "bug");
  for (const KillRow& r : m.rows) {
    out += text("%-30s", r.name().c_str());
    for (const Cell& c : r.cells) out += c.killed ? "  x" : c.checks > 0 ? "  ." : "   ";
    out += text("  %-18s %7lld %8.3f  %s\n",
                r.killed()           ? r.first_law.c_str()
                : !r.not_run.empty() ? "NOT_RUN"
                : r.mutant           ? "SURVIVES"
                                     : "passes",
                static_cast<long long>(r.checks_to_kill), r.seconds_to_kill,
                r.mutant ? std::string(r.mutant->description).c_str() : "control: no bug");
  }
  return out;
}

std::string laws_text(const std::vector<LawWorth>& laws) {
  std::string out = text("\n%-20s %-12s %s\n", "law", "kills", "the only killer of, or why it stays");
  for (const LawWorth& w : laws) {
    std::vector<std::string> kills;
    for (int n : w.kills) kills.push_back(std::to_string(n));
    out += text("%-20s %-12s ", w.name.c_str(), joined(kills).c_str());
    out += joined(w.only) + (!w.only.empty() && !w.stays.empty() ? "; " : "");
    if (!w.stays.empty()) out += "stays: " + w.stays;
    out += "\n";
  }
  return out;
}

std::string problems_text(const KillMatrix& m, double most_seconds) {
  std::string out;
  for (const KillRow& r : m.rows) {
    if (!r.mutant) {
      if (r.killed())
        out += "FALSE ALARM " + r.name() + ": " + r.first_law + " on " + r.first_case + ": " + r.reason + "\n";
      continue;
    }
    const std::string name = "mutant." + r.name();
    if (!r.not_run.empty()) out += "NOT_RUN " + name + ": " + r.not_run + "\n";
    if (!r.killed() && r.not_run.empty()) out += "SURVIVES " + name + ": " + std::string(r.mutant->description) + "\n";
    if (r.killed() && r.seconds_to_kill > most_seconds)
      out += "LATE " + name + text(": killed after %.1f s; the limit is %g s\n", r.seconds_to_kill, most_seconds);
    const auto expected =
        std::find_if(m.laws.begin(), m.laws.end(), [&](const Law* l) { return l->name == r.mutant->killer; });
    if (r.killed() && expected != m.laws.end() && !r.cells[static_cast<std::size_t>(expected - m.laws.begin())].killed)
      out += "note: " + name + " is killed, but not by " + std::string(r.mutant->killer) + "\n";
  }
  return out;
}

std::string verdict_line(const KillMatrix& m, bool pass) {
  const std::string not_run = m.not_run > 0 ? text("%zu NOT_RUN, ", m.not_run) : "";
  return text(
      "%s  seed %llu: %zu of %zu mutants killed, %s%zu late, %zu false alarms of %zu controls; "
      "seconds to the kill: median %.3f, most %.3f\n",
      pass ? "PASS" : "FAIL", static_cast<unsigned long long>(m.seed), m.killed, m.planted, not_run.c_str(), m.late,
      m.alarms, m.rows.size() - m.planted, m.median_seconds, m.most_seconds);
}

std::string matrix_json(const std::vector<KillMatrix>& runs, const std::vector<LawWorth>& laws,
                        const MutantOptions& options, bool pass) {
  nlohmann::ordered_json j;
  j["schema"] = "attest-mutants/2";
  j["verdict"] = pass ? "pass" : "fail";
  j["cases"] = options.cases;
  j["limit_seconds"] = options.seconds;
  if (options.device != "cpu") j["device"] = options.device, j["about"] = runs.front().about;
  for (const LawWorth& w : laws)
    j["laws"].push_back({{"name", w.name}, {"kills", w.kills}, {"only_killer_of", w.only}, {"why_it_stays", w.stays}});
  for (const KillMatrix& run : runs) {
    nlohmann::ordered_json kernels;
    for (const KillRow& r : run.rows) {
      nlohmann::ordered_json m;
      m["name"] = r.name();
      m["control"] = r.mutant == nullptr;
      if (r.mutant)
        m["class"] = r.mutant->bug_class, m["bug"] = r.mutant->description, m["expected_killer"] = r.mutant->killer;
      m["contract"] = r.kernel.kernel.contract_name;
      m["first_law"] = r.first_law, m["first_case"] = r.first_case, m["finding"] = r.reason;
      if (!r.not_run.empty()) m["not_run"] = r.not_run;
      m["checks_to_kill"] = r.checks_to_kill, m["seconds_to_kill"] = r.seconds_to_kill;
      for (std::size_t l = 0; l < run.laws.size(); ++l) {
        const Cell& c = r.cells[l];
        if (c.checks > 0)
          m["laws"][std::string(run.laws[l]->name)] = {
              {"checks", c.checks}, {"killed", c.killed}, {"case", c.killing_case}};
      }
      kernels.push_back(std::move(m));
    }
    j["runs"].push_back({{"seed", run.seed},
                         {"killed", run.killed},
                         {"mutants", run.planted},
                         {"late", run.late},
                         {"false_alarms", run.alarms},
                         {"median_seconds", run.median_seconds},
                         {"most_seconds", run.most_seconds},
                         {"kernels", std::move(kernels)}});
  }
  return j.dump(1) + "\n";
}

std::string matrix_markdown(const std::vector<KillMatrix>& runs, const std::vector<LawWorth>& laws,
                            const MutantOptions& options, bool pass) {
  const KillMatrix& first = runs.front();
  std::vector<std::string> seeds;
  for (const KillMatrix& m : runs) seeds.push_back(std::to_string(m.seed));
  std::string out = "# Kill matrix\n\n" + first.about + (first.about.empty() ? "" : "\n\n");
  out += text(
      "%zu planted bugs and %zu correct kernels under %zu laws: %d generated cases for each kernel and law, and "
      "the corpus, under the seeds %s. A kill may take %g s of processor time. Verdict: %s.\n\n",
      first.planted, first.rows.size() - first.planted, first.laws.size(), options.cases, joined(seeds).c_str(),
      options.seconds, pass ? "pass" : "fail");
  out += "| seed | killed | late | false alarms | median seconds | most seconds |\n|---|---|---|---|---|---|\n";
  for (const KillMatrix& m : runs)
    out += text("| %llu | %zu of %zu | %zu | %zu | %.3f | %.3f |\n", static_cast<unsigned long long>(m.seed), m.killed,
                m.planted, m.late, m.alarms, m.median_seconds, m.most_seconds);
  for (const KillMatrix& m : runs)
    if (const std::string problems = problems_text(m, options.seconds); !problems.empty())
      out += text("\nSeed %llu:\n\n```\n", static_cast<unsigned long long>(m.seed)) + problems + "```\n";
  out +=
      "\n## What the gate would lose without each law\n\n| law | kills by seed | the only killer of | why it stays "
      "|\n|---|---|---|---|\n";
  for (const LawWorth& w : laws) {
    std::vector<std::string> kills;
    for (int n : w.kills) kills.push_back(std::to_string(n));
    out += "| " + w.name + " | " + joined(kills) + " | " + joined(w.only) + " | " + w.stays + " |\n";
  }
  out +=
      "\n## Mutants\n\nChecks and seconds until the first law killed, seed by seed.\n\n| mutant | class | bug | first "
      "law | checks | seconds |\n|---|---|---|---|---|---|\n";
  for (std::size_t n = 0; n < first.rows.size(); ++n) {
    const KillRow& r = first.rows[n];
    if (!r.mutant) continue;
    std::vector<std::string> law, checks, seconds;
    for (const KillMatrix& m : runs) {
      const KillRow& x = m.rows[n];
      const std::string name = x.killed() ? x.first_law : x.not_run.empty() ? "SURVIVES" : "NOT_RUN";
      if (std::find(law.begin(), law.end(), name) == law.end()) law.push_back(name);
      checks.push_back(text("%lld", static_cast<long long>(x.checks_to_kill)));
      seconds.push_back(text("%.3f", x.seconds_to_kill));
    }
    out += "| " + r.name() + " | " + std::string(r.mutant->bug_class) + " | " + std::string(r.mutant->description) +
           " | " + joined(law) + " | " + joined(checks) + " | " + joined(seconds) + " |\n";
  }
  if (!first.about.empty()) {
    out += "\n## What was found\n\n| mutant | judge | case | finding |\n|---|---|---|---|\n";
    for (const KillRow& r : first.rows) {
      if (!r.mutant) continue;
      out += "| " + r.name() + " | " + r.first_law + " | " + r.first_case + " | `" + r.reason + "` |\n";
      // What a tool said, too.
      for (std::size_t l = 0; l < first.laws.size(); ++l)
        if (r.cells[l].killed && !first.laws[l]->check && first.laws[l]->name != r.first_law)
          out += "| | " + std::string(first.laws[l]->name) + " | one launch | `" + r.cells[l].killing_case + "` |\n";
    }
  }
  // One is enough to look at; the others differ by what chance lets a law see, and are in the JSON.
  out += text("\n## Matrix of seed %llu\n\n```\n", static_cast<unsigned long long>(first.seed)) + matrix_text(first) +
         "```\n";
  return out;
}

}  // namespace attest
