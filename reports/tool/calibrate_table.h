// A table of words, written as text or as Markdown.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct ReportTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// Columns as wide as their widest cell.
std::string as_text(const ReportTable& table);
std::string as_markdown(const ReportTable& table);

}  // namespace attest
