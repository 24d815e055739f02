// libFuzzer's entries of the targets over kernels. Each of these targets is one function: target().
#include "fuzz/case_target.h"
#include "fuzz/target.h"

// Kernels are chosen before the first input, so that a name without a kernel ends the process at once.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  attest::fuzz::target();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attest::fuzz::target().run({data, size});
  return 0;
}
