#include "properties/calibration/study.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "properties/check.h"
#include "properties/generate.h"
#include "properties/laws/pooling.h"

namespace attest::calibration {
namespace {

constexpr int kMostCases = 1'000'000;  // a kernel that refuses nearly everything must not run for ever

std::uint64_t fnv(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char ch : text) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3u;
  return h;
}

// Kernels have seeds of their own: one more kernel changes nothing for the others.
Case drawn(const Kernel& kernel, const Law& law, std::uint64_t seed, int index) {
  Random random(seed, fnv(kernel.name + "\n" + std::string(law.name) + "\n" + std::to_string(index)));
  const double size = random.unit();
  return generate_case(kernel, law, random, size);
}

}  // namespace

void Spread::add(double error, double spread) {
  ++outputs;
  const double multiple = spread > 0 ? std::fabs(error) / spread : error == 0 ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < kLambdas.size(); ++i) beyond[i] += multiple > kLambdas[i];
  most = std::max(most, multiple);
}

void Spread::add(const Spread& other) {
  outputs += other.outputs;
  for (std::size_t i = 0; i < kLambdas.size(); ++i) beyond[i] += other.beyond[i];
  most = std::max(most, other.most);
}

double Aggregates::mean() const {
  double sum = 0;
  for (const double x : z) sum += x;
  return sum / static_cast<double>(z.size());
}

double Aggregates::sd() const {
  const double m = mean();
  double sum = 0;
  for (const double x : z) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(z.size()));
}

double Aggregates::most() const { return z.empty() ? 0 : *std::max_element(z.begin(), z.end()); }

Aggregates measure_aggregates(const Kernel& kernel, OutDType out, std::uint64_t seed, std::int64_t outputs) {
  const Law& law = *find_law("unbiased");
  Aggregates a;
  a.kernel = kernel.name;
  a.group = &unbiased_threshold(kernel.abi->contract, out);
  for (int n = 0; a.outputs < outputs; ++n) {
    if (n == kMostCases) throw std::runtime_error(kernel.name + " gives too few outputs");
    Case c = drawn(kernel, law, seed, n);
    c.out = out;
    a.unbound = law.why_not(c, kernel);
    if (!a.unbound.empty()) break;
    const Pooled pooled = pool_outputs(c, kernel, LawContext{}, [&](double error, const ElementBound& b) {
      if (!a.group->o_rounded) a.spread.add(error, b.spread);
    });
    if (pooled.execution.status != Outcome::pass)
      throw std::runtime_error(kernel.name + ": " + pooled.execution.reason + " in\n" + to_text(c));
    a.outputs += pooled.outputs;
    if (pooled.enough()) {
      a.z.push_back(pooled.z());
    } else {
      ++a.too_few;
    }
  }
  return a;
}

Tier measure_tier(const Kernel& kernel, std::uint64_t seed, std::int64_t outputs) {
  const Law& law = *find_law("expected");
  Tier t;
  t.kernel = kernel.name;
  for (int n = 0; t.outputs < outputs; ++n) {
    if (n == kMostCases) throw std::runtime_error(kernel.name + " gives too few outputs");
    const Case c = drawn(kernel, law, seed, n);
    t.unbound = law.why_not(c, kernel);
    if (!t.unbound.empty()) break;
    const CheckResult r = check_case(c, kernel, law, LawContext{});
    ++t.cases;
    t.outputs += r.elements - r.vacuous_elements;
    t.failures += r.outcome == Outcome::fail;
    t.worst = std::max(t.worst, r.worst_ratio);
  }
  return t;
}

}  // namespace attest::calibration
