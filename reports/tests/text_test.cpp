// The small things of the tool.
#include "reports/tool/text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "oracle/case.h"
#include "reports/tests/run_tool.h"
#include "reports/tool/select.h"

namespace attest::testing {
namespace {

TEST(Text, FormatsAnyLength) {
  EXPECT_EQ(text("%d %s", 7, "x"), "7 x");
  EXPECT_EQ(text("%s", std::string(100000, 'y').c_str()).size(), 100000u);
}

TEST(Text, NoGlobMatchesEverythingAndAGlobOnlyItself) {
  EXPECT_TRUE(matches_any({}, "anything"));
  EXPECT_TRUE(matches_any({"x", "a*g"}, "anything"));
  EXPECT_FALSE(matches_any({"a*x"}, "anything"));
}

TEST(Text, ARequirementIsAGlobOrAFamily) {
  EXPECT_TRUE(requirement_matches("cuda", "cuda.fa2.bf16"));
  EXPECT_TRUE(requirement_matches("cuda.*", "cuda.fa2.bf16"));
  EXPECT_TRUE(requirement_matches("cuda.fa2.bf16", "cuda.fa2.bf16"));
  EXPECT_FALSE(requirement_matches("cuda", "cudax.fa2"));
  EXPECT_FALSE(requirement_matches("cuda.fa2", "cuda.fa2.bf16"));
}

TEST(Text, HashesAreFnv1a) {
  // Test vectors of the algorithm's authors: isthe.com/chongo/tech/comp/fnv.
  EXPECT_EQ(hex(fnv("")), "cbf29ce484222325");
  EXPECT_EQ(hex(fnv("a")), "af63dc4c8601ec8c");
  EXPECT_EQ(hex(fnv("foobar")), "85944171f73967e8");
}

TEST(Text, FilesAreWholeOrAbsent) {
  const std::string path = scratch() + "/x";
  write_whole(path, "first");
  write_whole(path, "second");
  EXPECT_EQ(read_text(path), "second");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  EXPECT_THROW(write_whole(scratch() + "/absent/x", "y"), UsageError);
  EXPECT_THROW(read_text(scratch() + "/absent"), UsageError);
}

TEST(Text, ALinkStaysAndItsTargetIsReplaced) {
  namespace fs = std::filesystem;
  for (const std::string name : {"text", "case"}) {
    const std::string path = scratch() + "/link-" + name, target = scratch() + "/target-" + name;
    fs::create_symlink("target-" + name, path);
    for (int round = 0; round < 2; ++round) {  // a dangling link first
      if (name == "text")
        write_whole(path, "content");
      else
        save_case({}, path);
      EXPECT_TRUE(fs::is_symlink(path));
      EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(target)));
      EXPECT_FALSE(read_text(target).empty());
    }
  }
}

TEST(Text, APipeIsWrittenToAndAFullDeviceIsAnError) {
  const std::string path = scratch() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const bool as_case : {false, true}) {
    std::string got;
    std::thread reader([&] { got = read_file(path); });
    if (as_case)
      save_case({}, path);
    else
      write_whole(path, "through the pipe");
    reader.join();
    EXPECT_EQ(got, as_case ? to_text({}) : "through the pipe");
    EXPECT_TRUE(std::filesystem::is_fifo(path));
  }
  EXPECT_THROW(write_whole("/dev/full", "x"), UsageError);
  EXPECT_THROW(save_case({}, "/dev/full"), CaseError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Text, CommandsSurviveAShell) {
  for (const std::string word : {"plain", "with space", "it's", "$HOME", "", "a;b", "*"})
    EXPECT_EQ(run_shell("printf %s " + shell_quoted(word)).out, word);
}

}  // namespace
}  // namespace attest::testing
