#include "fuzz/case_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace attest::fuzz {
namespace {

Case with_keys(std::size_t n) {
  Case c;
  c.shape = {.batch = 1, .q_heads = 1, .kv_heads = 1, .tq = 1, .tk = static_cast<std::int64_t>(n), .d_qk = 1, .d_v = 1};
  c.values.tensors["k"].literal.assign(n, 0.25);
  return c;
}

// What a process leaves when it is killed between begin() and end() is the case; after end() it is none.
TEST(CaseRecord, HoldsTheCaseWhileItRuns) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("record-" + std::to_string(getpid()) + ".case")).string();
  {
    CaseRecord record(path);
    EXPECT_FALSE(std::filesystem::exists(path));
    for (const std::size_t keys : {3, 40, 2}) {  // a shorter text follows a longer one
      record.begin(with_keys(keys));
      EXPECT_EQ(load_case(path), with_keys(keys));
      record.end();
      EXPECT_THROW(load_case(path), CaseError);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CaseRecord, DoesNotGoOnWithoutAFile) {
  CaseRecord record("/nowhere/x.case");
  EXPECT_THROW(record.begin(with_keys(1)), std::runtime_error);
}

}  // namespace
}  // namespace attest::fuzz
