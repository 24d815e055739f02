#include "reports/tool/waivers.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "properties/law.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

bool is_date(const std::string& s) {
  int y = 0, m = 0, d = 0, used = 0;
  if (s.size() != 10 || std::sscanf(s.c_str(), "%4d-%2d-%2d%n", &y, &m, &d, &used) != 3 || used != 10) return false;
  return std::chrono::year_month_day(std::chrono::year(y), std::chrono::month(static_cast<unsigned>(m)),
                                     std::chrono::day(static_cast<unsigned>(d)))
      .ok();
}

Waiver read_waiver(const nlohmann::json& entry, const std::string& where) {
  if (!entry.is_object()) throw UsageError(where + ": need an object with kernel, law, reason, expires");
  const std::set<std::string> fields = {"kernel", "law", "reason", "expires"};
  for (const auto& item : entry.items())
    if (!fields.contains(item.key()))
      throw UsageError(where + "." + item.key() + ": unknown field; known: kernel, law, reason, expires");
  const auto read = [&](const char* field) {
    if (!entry.contains(field) || !entry[field].is_string() || entry[field].get<std::string>().empty())
      throw UsageError(where + "." + field + ": need a text that is not empty");
    return entry[field].get<std::string>();
  };
  Waiver w{read("kernel"), read("law"), read("reason"), read("expires")};
  if (!is_date(w.expires)) throw UsageError(where + ".expires: \"" + w.expires + "\" is not a date YYYY-MM-DD");
  if (!find_law(w.law)) throw UsageError(where + ".law: there is no law " + w.law);
  return w;
}

}  // namespace

std::vector<Waiver> load_waivers(const std::string& path) {
  nlohmann::json ledger;
  try {
    ledger = nlohmann::json::parse(read_text(path), nullptr, true, true);
  } catch (const nlohmann::json::exception& e) {
    throw UsageError(path + ": not JSON: " + e.what());
  }
  if (!ledger.is_object() || ledger.size() != 1 || !ledger.contains("waivers") || !ledger["waivers"].is_array())
    throw UsageError(path + ": need {\"waivers\": [...]} and nothing else");
  std::vector<Waiver> out;
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 0; i < ledger["waivers"].size(); ++i) {
    const std::string where = path + ": waivers[" + std::to_string(i) + "]";
    out.push_back(read_waiver(ledger["waivers"][i], where));
    if (!seen.emplace(out.back().kernel, out.back().law).second)
      throw UsageError(where + ": a second waiver for " + out.back().kernel + " and " + out.back().law);
  }
  return out;
}

std::string today() {
  const auto day = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day date(day);
  return text("%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
              static_cast<unsigned>(date.day()));
}

}  // namespace attest
