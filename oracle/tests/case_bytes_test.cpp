// No bytes crash the parser: mutations of valid cases either parse or raise CaseError on one line.
#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/problem.h"
#include "oracle/tests/case_random.h"

namespace attest {
namespace {

std::string mutate(std::string text, Choice& pick, const std::string& other) {
  static const std::string tokens[] = {"-1",
                                       "1e999",
                                       "18446744073709551616",
                                       "9223372036854775807",
                                       "null",
                                       "[",
                                       "{",
                                       "}",
                                       "\"",
                                       "\\u0000",
                                       "\xff",
                                       "nan:",
                                       "0x1p",
                                       "//",
                                       "/*",
                                       "\"schema\"",
                                       "1e308"};
  const int edits = pick.coin() ? 1 : static_cast<int>(1 + pick.upto(3));
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const auto at = static_cast<std::size_t>(pick.upto(static_cast<std::int64_t>(text.size()) - 1));
    switch (pick.upto(6)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(pick.bits());
        break;
      case 2:
        text.erase(at, static_cast<std::size_t>(pick.upto(20)));
        break;
      case 3:
        text.insert(at, tokens[pick.upto(16)]);
        break;
      case 4:
        text.insert(at, other.substr(std::min(at, other.size()), 30));
        break;
      case 5:
        text.replace(at, 1, std::to_string(pick.upto(9)));
        break;
      default: {  // a number becomes another
        const auto digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, tokens[pick.upto(3)]);
      }
    }
  }
  return text;
}

TEST(CaseBytes, MutationsNeverCrash) {
  int parsed = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Choice pick(seed + 1000000);
    const std::string text = mutate(to_text(random_case(seed % 500)), pick, to_text(random_case(seed % 499)));
    try {
      const Case c = parse_case(text, "mutant");
      ++parsed;
      ASSERT_EQ(c, parse_case(to_text(c), "again")) << "seed " << seed << "\n" << text;
      // What passes validation must make a problem, too.
      if (problem_bytes(c, {DType::fp64, DType::fp64}) < 1e6) {
        ASSERT_EQ("", Problem(c, {DType::fp16, DType::fp32}).untouched_report()) << "seed " << seed;
      }
    } catch (const CaseError& e) {
      ++refused;
      const std::string what = e.what();
      ASSERT_EQ(what.npos, what.find('\n')) << what;
      ASSERT_EQ(0u, what.find("mutant: ")) << what;
    }
  }
  // Neither half may be idle, or the test says nothing.
  EXPECT_GT(parsed, 500);
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace attest
