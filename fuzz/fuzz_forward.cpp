// Claim: no forward kernel of ours breaks a law on any small case. Each input names a case, a kernel and a law beside
// `encloses`. Errors are judged against derived bounds, so inputs found by search are fair: the statistical laws, which
// are not, are left out.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/decode.h"
#include "fuzz/target.h"
#include "properties/check.h"
#include "properties/generate.h"
#include "properties/shapes.h"

namespace {

using namespace attest;

const std::vector<Kernel>& forward_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> forward;
    for (const Kernel& kernel : runnable_kernels())
      if (kernel.abi->op == ATTN_OP_FORWARD) forward.push_back(kernel);
    return forward;
  }();
  return kernels;
}

const std::vector<const Law*>& searched_laws() {
  static const std::vector<const Law*> chosen = [] {
    std::vector<const Law*> list;
    for (const Law& law : laws())
      if (law.searched_inputs) list.push_back(&law);
    return list;
  }();
  return chosen;
}

// Where failing cases go: the folder that ATTEST_FUZZ_CASES names, or the working directory.
std::string case_path(const Case& c) {
  const char* folder = std::getenv("ATTEST_FUZZ_CASES");
  return std::string(folder ? folder : ".") + "/forward-" + case_hash(c) + ".case";
}

[[noreturn]] void report(const Case& c, const Kernel& kernel, const Law& law, const CheckResult& result) {
  const std::string path = case_path(c);
  save_case(c, path);
  std::fprintf(stderr, "%s breaks %s: %s\n", kernel.name.c_str(), std::string(law.name).c_str(),
               describe(result).c_str());
  std::fprintf(stderr, "reproduce: attest check %s --kernels %s --laws %s\n", path.c_str(), kernel.name.c_str(),
               std::string(law.name).c_str());
  std::abort();
}

void check(const Case& c, const Kernel& kernel, const Law& law, std::uint64_t seed) {
  if (!law.why_not(c, kernel).empty()) return;
  LawContext context;
  context.seed = seed;
  context.max_rows = 24;  // edges of tiles first, then a random rest: more inputs a second matter more than more rows
  // A crash inside a kernel leaves libFuzzer's bytes; replayed with ATTEST_FUZZ_CASES set they leave a .case as well.
  // Not while fuzzing: the atomic write would cost more than the check.
  const std::string record = std::getenv("ATTEST_FUZZ_CASES") ? case_path(c) : "";
  const CheckResult result = check_case(c, kernel, law, context, record);
  if (result.outcome == Outcome::fail) report(c, kernel, law, result);
  if (result.outcome == Outcome::pass) ++fuzz::tally.accepted;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ++fuzz::tally.inputs;
  fuzz::Bytes bytes({data, size});
  const auto& kernels = forward_kernels();
  const auto& laws = searched_laws();
  const Kernel& kernel = kernels[bytes.index(kernels.size())];
  const Law& law = *laws[bytes.index(laws.size())];
  const std::uint8_t seed = bytes.byte();
  Case c = fuzz::decode_forward(bytes);
  check(c, kernel, *find_law("encloses"), seed);
  // Some laws speak only of cases with a masked row, spare keys, ...: shaped as the generator does. Literal tensors
  // have the shape that they were written for.
  if ((seed & 1) && law.shape_case && c.values.tensors.empty()) {
    Random random(seed);
    law.shape_case(c, random);
    agree(c, random);
  }
  if (law.name != "encloses") check(c, kernel, law, seed);
  return 0;
}
