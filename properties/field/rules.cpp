#include "properties/field/rules.h"

#include <algorithm>
#include <cmath>

namespace attest::field {

bool all_close(Numbers got, Numbers want, double atol, double rtol, bool equal_nan) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || (equal_nan && std::isnan(got[i]) && std::isnan(want[i]))) continue;
    const double error = std::fabs(got[i] - want[i]);
    if (!std::isfinite(error) || !(error <= atol + rtol * std::fabs(want[i]))) return false;
  }
  return true;
}

std::int64_t exceeding(Numbers got, Numbers want, double atol, double rtol) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < got.size(); ++i) n += std::fabs(got[i] - want[i]) > atol + rtol * std::fabs(want[i]);
  return n;
}

double max_error(Numbers got, Numbers want) {
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - want[i]);
    if (std::isnan(error)) return error;
    most = std::max(most, error);
  }
  return most;
}

double mean_error(Numbers got, Numbers want) {
  double sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) sum += std::fabs(got[i] - want[i]);
  return got.empty() ? 0 : sum / static_cast<double>(got.size());
}

double normalised_square_error(Numbers got, Numbers want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += got[i] * got[i];
  }
  return error / size;
}

bool any_nan(Numbers x) {
  return std::any_of(x.begin(), x.end(), [](double y) { return std::isnan(y); });
}

bool any_infinite(Numbers x) {
  return std::any_of(x.begin(), x.end(), [](double y) { return std::isinf(y); });
}

double epsilon(DType format) {
  switch (format) {
    case DType::fp64:
      return 0x1p-52;
    case DType::fp16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

Rule close_outputs(double atol, double rtol) {
  return [=](const Subject& s) { return all_close(s.got.o, s.reference.want.o, atol, rtol); };
}

Rule close_outputs_and_lse(double atol, double rtol) {
  return [=](const Subject& s) {
    return all_close(s.got.o, s.reference.want.o, atol, rtol) && all_close(s.got.lse, s.reference.want.lse, atol, rtol);
  };
}

}  // namespace attest::field
