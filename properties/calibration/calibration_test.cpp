// The thresholds of the statistical laws, measured again and held against their rule. ATTEST_CALIBRATION_OUTPUTS:
// outputs of each group; ATTEST_SEED: other cases; ATTEST_JOBS: threads; ATTEST_RECORD: where the record goes (else to
// stdout).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "properties/calibration/calibrate.h"
#include "properties/generate.h"

namespace attest::calibration {
namespace {

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

// Another sample gives another fit: of 4,300 checks, of which 100 are fitted, the rule moves by about 0.01.
// below.
constexpr double kSampling = 0.03, kRateSampling = 100;

TEST(CalibrationFull, ThresholdsFollowTheirRule) {
  Options options;
  options.seed = setting("ATTEST_SEED", options.seed);
  options.outputs = static_cast<std::int64_t>(setting("ATTEST_CALIBRATION_OUTPUTS", 10'000'000));
  options.jobs = static_cast<int>(setting("ATTEST_JOBS", 2));
  const Study study = calibrate(options);
  if (const char* path = std::getenv("ATTEST_RECORD")) {
    std::ofstream file(path);
    write(file, study);
    ASSERT_TRUE(file.flush()) << "cannot write " << path;
  } else {
    write(std::cout, study);
  }

  for (const Group& g : study.groups) {
    SCOPED_TRACE(g.threshold->errors);
    EXPECT_GE(g.outputs, options.outputs);
    EXPECT_LE(g.most, g.threshold->most);
    EXPECT_LE(g.rule.normal(g.threshold->most), kRateSampling * kFalseAlarm) << "tighter than the rule allows";
    EXPECT_LE(g.threshold->most, g.rule.quantile(kFalseAlarm) + kSampling) << "looser than the rule allows";
  }
  for (std::size_t i = 0; i < kLambdas.size(); ++i) {
    const double allowed = 2 * std::exp(-kLambdas[i] * kLambdas[i] / 2);
    EXPECT_LE(static_cast<double>(study.spread.beyond[i]), allowed * static_cast<double>(study.spread.outputs))
        << "lambda " << kLambdas[i];
  }
  for (const Tier& t : study.tiers) EXPECT_EQ(t.failures, 0) << t.kernel;

  ASSERT_EQ(study.powers.size(), 5u);
  for (const Aggregates* a : {&study.powers.front().kept, &study.powers.front().rounded})
    EXPECT_LE(a->most(), a->group->most) << "the control of the biased kernels";
  for (const Aggregates* a : {&study.powers.back().kept, &study.powers.back().rounded})
    EXPECT_GT(a->mean(), a->group->most) << "a truncated P is seen with a margin";
}

// The fit finds the normal distribution that a sample is drawn from, and its tails lie in order.
TEST(CalibrationFull, TailOfANormalSample) {
  Random random(3);
  std::vector<double> sample(20'000);
  for (double& x : sample) {
    double sum = -24;
    for (int i = 0; i < 48; ++i) sum += random.unit();
    x = 0.6 + 0.02 * sum / 2;  // 48 uniforms have the variance 4
  }
  const Tail t = fit_tail(sample);
  EXPECT_NEAR(t.quantile(1e-9), 0.6 + 0.02 * 5.998, 0.02);
  EXPECT_NEAR(t.normal(t.quantile(1e-9)), 1e-9, 1e-12);
  EXPECT_GT(t.exponential(t.quantile(1e-9)), 1e-9);
  EXPECT_NEAR(t.normal(t.u), t.share, 1e-6);
  EXPECT_THROW(fit_tail({1, 2, 3}), std::invalid_argument);
}

}  // namespace
}  // namespace attest::calibration
