#include "reports/tool/bench_times.h"

#include <algorithm>

namespace attest {

BenchSpread bench_spread(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  // Linear between neighbours, as most tools do it.
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {quantile(0.5),  quantile(0.25), quantile(0.75),
          values.front(), values.back(),  static_cast<int>(values.size())};
}

}  // namespace attest
