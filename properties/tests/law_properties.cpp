// Every law, on generated cases, for every kernel that it binds. RapidCheck shrinks what fails; the case stands on disk
// before the kernel runs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "properties/check.h"
#include "properties/generate.h"

namespace attest {

// Found by argument-dependent lookup: how RapidCheck prints a counterexample.
void showValue(const Case& c, std::ostream& out) { out << to_text(c); }

namespace {

constexpr int kMostShrinks = 400;

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}
std::uint64_t seed() { return setting("ATTEST_SEED", 20240607); }
int cases_per_pair() { return static_cast<int>(setting("ATTEST_CASES", 20)); }

// Cases for this kernel and law, shrinking through shrink_case. The number of candidates is bounded: a kernel that
// fails on everything would otherwise be shrunk for ever.
rc::Gen<Case> cases(const Kernel& kernel, const Law& law) {
  return rc::Gen<Case>([&kernel, &law](const rc::Random& random, int size) {
    Random choices(rc::Random(random).next());
    auto left = std::make_shared<int>(kMostShrinks);
    return rc::shrinkable::shrinkRecur(generate_case(kernel, law, choices, size / 100.0), [left](const Case& c) {
      std::vector<Case> simpler;
      if (*left > 0) simpler = shrink_case(c);
      *left -= static_cast<int>(simpler.size());
      return rc::seq::fromContainer(std::move(simpler));
    });
  });
}

struct Counts {
  int checks = 0, pass = 0, vacuous = 0, undecided = 0, rejected = 0;
  std::string reason;

  void add(const CheckResult& r) {
    ++checks;
    pass += r.outcome == Outcome::pass;
    vacuous += r.outcome == Outcome::vacuous;
    undecided += r.outcome == Outcome::undecided;
    rejected += r.outcome == Outcome::rejected;
    if (r.outcome != Outcome::pass) reason = r.reason;
  }
};

// Cases are written durably before each run; in memory-backed storage that costs nothing, and a crash of this program
// leaves it alone all the same.
std::filesystem::path record_folder() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code ignored;
  const auto root = std::filesystem::is_directory(memory, ignored) ? memory : std::filesystem::temp_directory_path();
  return root / "attest-properties";
}

class EveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void hold(const Kernel& kernel, const Law& law) {
    const auto folder = record_folder();
    std::filesystem::create_directories(folder);
    const std::string record = (folder / (kernel.name + "-" + std::string(law.name) + ".case")).string();
    Counts counts;
    Case last;
    CheckResult worst;
    const auto property = [&](const Case& c) {
      if (!law.why_not(c, kernel).empty()) return;
      const CheckResult r = check_case(c, kernel, law, LawContext{}, record);
      counts.add(r);
      if (r.outcome != Outcome::fail) return;
      last = c;
      worst = r;
      RC_FAIL(describe(r));
    };
    rc::detail::TestParams params;
    params.seed = seed();
    // A statistical check pools thousands of outputs by itself.
    params.maxSuccess = law.searched_inputs ? cases_per_pair() : std::max(cases_per_pair() / 4, 3);
    rc::detail::TestMetadata metadata;
    metadata.description = kernel.name + " " + std::string(law.name);
    const auto result = rc::detail::checkTestable([&] { property(*cases(kernel, law)); }, metadata, params);
    if (!result.is<rc::detail::SuccessResult>()) {
      save_case(last, record);
      ADD_FAILURE() << kernel.name << " breaks " << law.name << " (seed " << seed() << "): " << describe(worst)
                    << "\n  reproduce: attest check " << record << " --kernels " << kernel.name << " --laws "
                    << law.name;
      return;
    }
    if (counts.checks > 0) {
      EXPECT_GT(counts.pass, 0) << kernel.name << " has no PASS under " << law.name << " in " << counts.checks
                                << " checks: " << counts.vacuous << " vacuous, " << counts.undecided << " undecided, "
                                << counts.rejected << " rejected; last reason: " << counts.reason;
    }
    bound_ += counts.checks;
  }
  int bound_ = 0;
};

TEST_P(EveryKernel, Keeps) {
  const Law* law = find_law(GetParam());
  ASSERT_NE(law, nullptr);
  const auto kernels = runnable_kernels();
  for (const Kernel& kernel : kernels) hold(kernel, *law);
  EXPECT_GT(bound_, 0) << "the law binds no kernel";
}

std::vector<std::string> law_names() {
  std::vector<std::string> names;
  for (const Law& law : laws()) names.emplace_back(law.name);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& ch : name)
    if (ch == '-') ch = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Law, EveryKernel, testing::ValuesIn(law_names()), test_name);

}  // namespace
}  // namespace attest
