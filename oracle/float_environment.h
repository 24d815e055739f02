// The floating-point environment that truth and bounds are derived for: round to nearest, subnormals kept.
#pragma once

#include <cfenv>
#include <string>

namespace attest {

// Puts the environment of this thread back when it goes out of scope. Code of others may change it: a library linked
// with -ffast-math sets flush-to-zero when it is loaded (crtfastmath.o), and a kernel may leave another rounding mode.
class FloatEnvironmentGuard {
 public:
  FloatEnvironmentGuard() { std::fegetenv(&saved_); }
  ~FloatEnvironmentGuard() { std::fesetenv(&saved_); }
  FloatEnvironmentGuard(const FloatEnvironmentGuard&) = delete;
  FloatEnvironmentGuard& operator=(const FloatEnvironmentGuard&) = delete;

 private:
  std::fenv_t saved_;
};

// "" if this thread rounds to nearest and keeps subnormals, operands and results, in both formats; else what is wrong.
std::string float_environment_fault();

}  // namespace attest
