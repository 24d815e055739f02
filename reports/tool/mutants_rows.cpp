// Rows of the GPU mutants' matrix on their way from the processes that judge: one line "@ law<tab>case" before each
// check, and at the end one line "= " with the row.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/tool/mutants_device.h"

namespace attest {
namespace {

std::size_t column(const std::vector<const Law*>& laws, std::string_view name) {
  return static_cast<std::size_t>(
      std::find_if(laws.begin(), laws.end(), [&](const Law* l) { return l->name == name; }) - laws.begin());
}

}  // namespace

std::string written_row(const KillRow& row, const std::vector<const Law*>& laws) {
  nlohmann::json j = {{"first_law", row.first_law},
                      {"first_case", row.first_case},
                      {"checks_to_kill", row.checks_to_kill},
                      {"seconds_to_kill", row.seconds_to_kill},
                      {"reason", row.reason},
                      {"cells", nlohmann::json::array()}};
  for (std::size_t l = 0; l < laws.size(); ++l) {
    const Cell& c = row.cells[l];
    if (c.checks > 0) j["cells"].push_back({laws[l]->name, c.checks, c.killed, c.killing_case});
  }
  return "= " + j.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void read_row(KillRow& row, const std::vector<const Law*>& laws, const std::string& written) {
  const auto j = nlohmann::json::parse(written.substr(2));
  row.first_law = j.at("first_law"), row.first_case = j.at("first_case"), row.reason = j.at("reason");
  row.checks_to_kill = j.at("checks_to_kill"), row.seconds_to_kill = j.at("seconds_to_kill");
  for (const auto& c : j.at("cells"))
    row.cells.at(column(laws, c.at(0).get<std::string>())) = {c.at(1), c.at(2), c.at(3)};
}

void blame_last_check(KillRow& row, const std::vector<const Law*>& laws, const std::string& output,
                      const std::string& ending) {
  std::istringstream lines(output);
  std::string law, name, said;
  std::int64_t checks = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (!line.starts_with("@ ") || tab == std::string::npos) {
      said = line;
      continue;
    }
    law = line.substr(2, tab - 2), name = line.substr(tab + 1);
    ++checks;
    if (const std::size_t at = column(laws, law); at < laws.size()) ++row.cells[at].checks;
  }
  row.first_law = law.empty() ? "(not begun)" : law;
  row.first_case = name;
  row.checks_to_kill = checks;
  row.reason = ending + (law.empty() && !said.empty() ? ": " + said : "");
  if (const std::size_t at = column(laws, law); at < laws.size())
    row.cells[at].killed = true, row.cells[at].killing_case = name;
}

void add_findings(KillRow& row, const KillRow& more) {
  std::int64_t before = 0;
  for (const Cell& c : row.cells) before += c.checks;
  for (std::size_t l = 0; l < row.cells.size(); ++l) {
    Cell& c = row.cells[l];
    c.checks += more.cells[l].checks;
    if (!c.killed) c.killing_case = more.cells[l].killing_case;
    c.killed |= more.cells[l].killed;
  }
  if (row.killed() || !more.killed()) return;
  row.first_law = more.first_law, row.first_case = more.first_case, row.reason = more.reason;
  row.checks_to_kill = before + more.checks_to_kill;
  row.seconds_to_kill = more.seconds_to_kill;
}

}  // namespace attest
