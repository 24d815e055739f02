#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzz/case_target.h"

namespace attest::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> stored(const std::string& target) {
  std::vector<Bytes> out;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEST_SOURCE_DIR "/corpus/fuzz/" + target)) {
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

// Every kernel and every law that a target checks is asked for by one of its stored inputs.
void expect_all_reached(const std::string& target, const std::vector<Subject>& subjects) {
  std::set<std::string_view> kernels, laws, wanted;
  for (const Subject& s : subjects)
    for (const Law* law : s.laws) wanted.insert(law->name);
  for (const Bytes& bytes : stored(target)) {
    const Genome g = decode(bytes);
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

// A score of +inf, say, leaves step-folds undecided, with an error far above what would be a bound.
TEST(StoredInputs, WhatPassesIsWithinItsBound) {
  CaseTarget step("step", subjects_of(Op::step));
  for (const Bytes& bytes : stored("step")) step.run(bytes);
  EXPECT_GT(step.worst(), 0.5);
  EXPECT_LE(step.worst(), 1);
}

}  // namespace
}  // namespace attest::fuzz
