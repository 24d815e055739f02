// Every .case of the corpus, through every kernel and law that it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "properties/check.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> cases_under(const std::string& folder) {
  std::vector<fs::path> out;
  const fs::path root = fs::path(ATTEST_SOURCE_DIR) / "corpus" / folder;
  if (!fs::exists(root)) return out;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".case") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, Replays) {
  const auto kernels = runnable_kernels();
  LawContext context;
  context.max_rows = 32;  // models are large; encloses over all of their rows is the gate's business
  int files = 0;
  for (const fs::path& path : cases_under(GetParam())) {
    ++files;
    Case c;
    try {
      c = load_case(path.string());
    } catch (const CaseError& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    int checks = 0, passes = 0;
    for (const Kernel& kernel : kernels)
      for (const Law& law : laws()) {
        if (!meant_for(c, kernel.name, law.name) || !law.why_not(c, kernel).empty()) continue;
        const CheckResult r = check_case(c, kernel, law, context);
        ++checks;
        passes += r.outcome == Outcome::pass;
        EXPECT_NE(r.outcome, Outcome::fail) << describe(r) << "\n  reproduce: attest check " << path.string()
                                            << " --kernels " << kernel.name << " --laws " << law.name;
      }
    // Reserved options are refused by everybody, and a case may be about just that.
    if (!c.reserved.any()) {
      EXPECT_GT(passes, 0) << path << ": no PASS in " << checks << " checks";
    }
  }
  EXPECT_GT(files, 0) << "no cases under corpus/" << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Folder, Corpus, testing::Values("seeds", "regressions", "models", "real"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace attest
