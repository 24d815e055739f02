// The ledger of known failures: each has a reason and a day on which it ends. A waiver never hides anything: it is
// printed, and one that has expired, or whose failure is gone, fails the gate, so that the ledger cannot rot.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct Waiver {
  std::string kernel, law;  // exact names
  std::string reason;
  std::string expires;  // YYYY-MM-DD, the last day (UTC) on which it holds
};

// Reads {"waivers": [{"kernel", "law", "reason", "expires"}]}, comments allowed. Raises UsageError: file, entry, field.
std::vector<Waiver> load_waivers(const std::string& path);

// Today in UTC, YYYY-MM-DD; such dates compare as text.
std::string today();

}  // namespace attest
