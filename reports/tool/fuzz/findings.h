// What workers found: each kind kept once as a .case with its provenance, and proven by `attest check`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/tool/fuzz/engine.h"
#include "reports/tool/fuzz/targets.h"

namespace attest {

class FuzzFindings {
 public:
  FuzzFindings(const FuzzFolder& folder, const FuzzOptions& options, const FuzzEngine& engine);

  // A finding that a worker has reported. Says in one line what became of it; empty for one more of a kind.
  std::string add(const FuzzTarget& target, const FuzzFinding& finding);
  // Bytes on which a worker died without a word: replayed with every case on disk before its kernel runs. The file goes
  // where the replay names its finding.
  std::string add_artifact(const FuzzTarget& target, const std::string& artifact, const std::string& last_words);

  // The case whose kernel was running when a worker died, with the kernel and the law in it.
  std::string add_running(const FuzzTarget& target, const std::filesystem::path& file, const std::string& last_words);

  std::int64_t kinds() const { return static_cast<std::int64_t>(kinds_.size()); }
  std::int64_t kinds(const FuzzTarget& target) const;

 private:
  std::string keep_bytes(const FuzzTarget& target, const std::string& artifact, const std::string& last_words);

  const FuzzFolder& folder_;
  const FuzzOptions& options_;
  const FuzzEngine& engine_;
  std::map<std::string, std::int64_t> kinds_;  // "target kernel law": how often
};

}  // namespace attest
