#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzz/subjects.h"

namespace attest::fuzz {
namespace {

std::vector<Genome> stored(const std::string& target) {
  std::vector<Genome> out;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEST_SOURCE_DIR "/corpus/fuzz/" + target)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    out.push_back(decode({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
  }
  return out;
}

// Every kernel and every law that a target checks is asked for by one of its stored inputs.
void expect_all_reached(const std::string& target, const std::vector<Subject>& subjects) {
  std::set<std::string_view> kernels, laws, wanted;
  for (const Subject& s : subjects)
    for (const Law* law : s.laws) wanted.insert(law->name);
  for (const Genome& g : stored(target)) {
    const Subject& s = subjects[g[Gene::kernel] % subjects.size()];
    kernels.insert(s.kernel.name);
    laws.insert(s.laws[g[Gene::law] % s.laws.size()]->name);
  }
  EXPECT_EQ(kernels.size(), subjects.size()) << target;
  for (const std::string_view law : wanted) EXPECT_TRUE(laws.contains(law)) << target << " has no input for " << law;
}

TEST(StoredInputs, ReachEveryKernelAndLaw) {
  expect_all_reached("forward", subjects_of(Op::forward));
  expect_all_reached("decode", subjects_of(Op::forward, ATTN_ALG_SPLIT));
  expect_all_reached("step", subjects_of(Op::step));
  expect_all_reached("merge", subjects_of(Op::merge));
}

}  // namespace
}  // namespace attest::fuzz
