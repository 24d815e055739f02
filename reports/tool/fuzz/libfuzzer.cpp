#include "reports/tool/fuzz/libfuzzer.h"

#include <algorithm>
#include <cmath>

#include "reports/tool/text.h"

namespace attest {

FuzzCommand LibFuzzer::worker(const FuzzTarget& target, const FuzzFolder& folder, int /*number*/, double seconds,
                              std::uint64_t seed) {
  std::vector<std::string> words = {
      target.program,
      // libFuzzer takes 0 for "any".
      text("-seed=%llu", static_cast<unsigned long long>(seed % 0xffffffffu + 1)),
      text("-max_total_time=%lld", static_cast<long long>(std::max(1.0, std::ceil(seconds)))),
      "-reload=1",
      "-print_final_stats=1",
      "-print_funcs=0",  // naming them takes a symboliser and seconds
      "-timeout=60",
      "-rss_limit_mb=4096",
      "-artifact_prefix=" + (folder.findings() / (target.name + "-")).string(),
  };
  for (const auto& [name, value] : target.options()) words.push_back("-" + name + "=" + value);
  words.push_back(folder.inputs(target).string());
  if (const std::string more = folder.stored(target); !more.empty()) words.push_back(more);
  return {words, {}};
}

std::vector<std::string> LibFuzzer::replay(const FuzzTarget& target, const std::string& bytes) const {
  return {target.program, "-timeout=60", bytes};
}

std::vector<std::string> LibFuzzer::minimise(const FuzzTarget& target, const FuzzFolder& folder,
                                             const std::string& smaller) const {
  std::vector<std::string> words = {target.program, "-merge=1", "-rss_limit_mb=4096"};
  for (const auto& [name, value] : target.options()) words.push_back("-" + name + "=" + value);
  words.insert(words.end(), {smaller, folder.inputs(target).string()});
  if (const std::string more = folder.stored(target); !more.empty()) words.push_back(more);
  return words;
}

}  // namespace attest
