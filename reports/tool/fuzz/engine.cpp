#include "reports/tool/fuzz/engine.h"

#include "reports/tool/fuzz/afl.h"
#include "reports/tool/fuzz/libfuzzer.h"
#include "reports/tool/text.h"

namespace attest {

std::unique_ptr<FuzzEngine> fuzz_engine(const FuzzOptions& options) {
  if (options.engine == "libfuzzer") return std::make_unique<LibFuzzer>();
  if (options.engine == "afl") return std::make_unique<Afl>();
  throw UsageError("no engine " + options.engine + "; there are: libfuzzer, afl");
}

}  // namespace attest
