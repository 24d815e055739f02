// The file format: round trip, canonical text, atomic save.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "oracle/case.h"
#include "oracle/number.h"
#include "oracle/tests/case_random.h"

namespace attest {
namespace {

TEST(CaseText, RandomCasesSurviveTheRoundTrip) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Case c = random_case(seed);
    const std::string text = to_text(c);
    Case back;
    ASSERT_NO_THROW(back = parse_case(text, "test")) << "seed " << seed << "\n" << text;
    ASSERT_EQ(c, back) << "seed " << seed << "\n" << text;
    ASSERT_EQ(text, to_text(back)) << "seed " << seed;
    ASSERT_EQ(case_hash(c), case_hash(back));
  }
}

TEST(CaseText, CanonicalTextIsReadable) {
  const Case c = parse_case(R"({
    // comments are fine
    "schema": "attest-case/1", "op": "forward", "shape": {"tq": 2, "tk": 3, "d_qk": 2, "d_v": 2},
    "values": {"tensors": {"q": [1, 0, 0.0, "1"], "v": [1, 2, 3, 4, 5, "nan:7fc00001"]}, "seed": 7},
    "scale": 0.5, "mask": {"causal": "top-left", "visible": {"rows": ["110", "111"]}}, "tiling": {"block_k": 2}
  })",
                            "test");
  EXPECT_EQ(R"({
  "schema": "attest-case/1",
  "op": "forward",
  "shape": {"batch": 1, "q_heads": 1, "kv_heads": 1, "tq": 2, "tk": 3, "d_qk": 2, "d_v": 2},
  "scale": "0x1p-1",
  "mask": {"causal": "top-left", "visible": {"rows": ["110", "111"]}},
  "tiling": {"block_k": 2},
  "values": {
    "seed": "7",
    "tensors": {
      "q": ["0x1p+0", "0x0p+0", "0x0p+0", "0x1p+0"],
      "v": ["0x1p+0", "0x1p+1", "0x1.8p+1", "0x1p+2", "0x1.4p+2", "nan:7fc00001"]
    }
  }
}
)",
            to_text(c));
}

TEST(CaseText, EqualityIsOfBits) {
  Case a = parse_case(minimal("", R"("values": {"tensors": {"v": ["nan:7fc00001", 0]}})"), "test");
  Case b = a;
  EXPECT_EQ(a, b);  // a NaN equals itself
  b.values.tensors["v"].literal[1] = -0.0;
  EXPECT_NE(a, b);
  EXPECT_NE(to_text(a), to_text(b));
  b = a;
  b.values.tensors["v"].literal[0] = *parse_number("nan:7fc00002");
  EXPECT_NE(a, b);
  EXPECT_NE(case_hash(a), case_hash(b));
  b = a;
  b.directory = "elsewhere";
  EXPECT_EQ(a, b);
  b.about = "a story";
  EXPECT_NE(a, b);
  EXPECT_EQ(case_hash(a), case_hash(b));
}

TEST(CaseText, HashIsStable) {
  // A name in a corpus must not change with the compiler or the version: this is the promise, not a regression test.
  EXPECT_EQ("acbca0be0b588a16", case_hash(Case{}));
}

class SaveCase : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("attest-save-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    chmod(folder_.c_str(), 0755);
    std::filesystem::remove_all(folder_);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(SaveCase, ReplacesTheOldFileAndLeavesNoOther) {
  const std::string path = folder_ / "x.case";
  const Case first = random_case(1), second = random_case(2);
  save_case(first, path);
  EXPECT_EQ(first, load_case(path));
  struct stat before {};
  stat(path.c_str(), &before);
  save_case(second, path);
  struct stat after {};
  stat(path.c_str(), &after);
  EXPECT_EQ(second, load_case(path));
  EXPECT_NE(before.st_ino, after.st_ino);  // another file took the name: the old one was never half written
  EXPECT_EQ(1u, files());
}

TEST_F(SaveCase, AFailureNamesTheFileAndLeavesNothing) {
  const std::string path = folder_ / "missing" / "x.case";
  EXPECT_THROW(save_case(Case{}, path), CaseError);
  // A directory has the name: the rename must fail, and the temporary file go.
  std::filesystem::create_directories(folder_ / "taken.case");
  try {
    save_case(Case{}, folder_ / "taken.case");
    FAIL() << "saved over a directory";
  } catch (const CaseError& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("taken.case"));
  }
  EXPECT_EQ(1u, files());
}

TEST_F(SaveCase, LoadedCasesKnowTheirFolder) {
  save_case(Case{}, folder_ / "x.case");
  EXPECT_EQ(folder_.string(), load_case(folder_ / "x.case").directory);
}

}  // namespace
}  // namespace attest
