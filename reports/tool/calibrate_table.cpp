#include "reports/tool/calibrate_table.h"

#include <algorithm>

#include "reports/tool/text.h"

namespace attest {

std::string as_text(const ReportTable& table) {
  std::vector<std::size_t> widths(table.header.size());
  const auto widen = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t i = 0; i < row.size(); ++i) out += text("%-*s  ", static_cast<int>(widths[i]), row[i].c_str());
    return out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  };
  std::string out = table.title + "\n" + line(table.header);
  for (const auto& row : table.rows) out += line(row);
  return out;
}

std::string as_markdown(const ReportTable& table) {
  const auto line = [](const std::vector<std::string>& row) {
    std::string out = "|";
    for (const std::string& cell : row) out += " " + cell + " |";
    return out + "\n";
  };
  std::string out = "## " + table.title + "\n\n" + line(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& row : table.rows) out += line(row);
  return out;
}

}  // namespace attest
