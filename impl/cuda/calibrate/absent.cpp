// A build without CUDA has nothing to measure, and says what would change that.
#include "impl/cuda/calibrate/measure.h"

namespace attn::calibrate {

namespace {

bool absent(std::string& why) {
  why = "built without CUDA: configure with -DATTEST_CUDA=ON where nvcc is installed";
  return false;
}

}  // namespace

bool describe(Device&, std::string& why) { return absent(why); }
bool sweep(Function, double, Sweep&, std::string& why) { return absent(why); }
bool evaluate(Function, std::span<const std::uint32_t>, std::span<std::uint32_t>, std::string& why) {
  return absent(why);
}
bool count_differences(Function, Function, std::uint64_t&, std::string& why) { return absent(why); }
bool count_misrounded(CudaFormat, std::uint64_t&, std::string& why) { return absent(why); }
bool has(Instruction) { return false; }
bool compare(const Comparison&, const Inputs&, std::span<const Accumulation>, Matches&, std::string& why) {
  return absent(why);
}

}  // namespace attn::calibrate
