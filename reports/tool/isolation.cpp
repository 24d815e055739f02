#include "reports/tool/isolation.h"

#include <algorithm>

#include "reports/tool/text.h"

namespace attest {

bool isolates(const IsolationOptions& options, const std::vector<LoadedKernel>& kernels) {
  if (options.isolate != Isolate::plugins) return options.isolate == Isolate::all;
  return std::any_of(kernels.begin(), kernels.end(), [](const LoadedKernel& k) { return k.from_plugin; });
}

bool under_sanitizer() noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

std::string isolation_flags(const IsolationOptions& options) {
  const IsolationOptions usual;
  std::string flags;
  if (options.isolate == Isolate::all) flags += " --isolate";
  if (options.seconds != usual.seconds) flags += text(" --limit-seconds %.10g", options.seconds);
  if (options.memory != usual.memory) flags += text(" --limit-memory %.10g", options.memory);
  return flags;
}

}  // namespace attest
