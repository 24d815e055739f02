#include "properties/calibration/tail.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace attest::calibration {
namespace {

double above(double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); }  // of the standard normal distribution

double standard_quantile(double p) {
  double lo = 0, hi = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (lo + hi) / 2;
    (above(middle) > p ? lo : hi) = middle;
  }
  return hi;
}

}  // namespace

Tail fit_tail(std::vector<double> sample) {
  if (sample.size() < 1000) throw std::invalid_argument("a tail needs at least 1000 values");
  const std::size_t count = std::max<std::size_t>(100, sample.size() / 100);
  std::sort(sample.begin(), sample.end());
  Tail t;
  t.sample = sample.size();
  t.share = static_cast<double>(count) / static_cast<double>(sample.size());
  t.u = sample[sample.size() - count - 1];
  for (std::size_t i = sample.size() - count; i < sample.size(); ++i) t.mean_excess += sample[i] - t.u;
  t.mean_excess /= static_cast<double>(count);
  // The mean excess of a standard normal variable over x is phi(x) / P(X > x) - x.
  const double x = standard_quantile(t.share);
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  t.sd = t.mean_excess / (density / t.share - x);
  t.mean = t.u - x * t.sd;
  return t;
}

double Tail::normal(double z) const { return above((z - mean) / sd); }
double Tail::exponential(double z) const { return share * std::exp(-(z - u) / mean_excess); }
double Tail::quantile(double p) const { return mean + sd * standard_quantile(p); }

}  // namespace attest::calibration
