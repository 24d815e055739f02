#include "oracle/float_environment.h"

#include <limits>

namespace attest {
namespace {

// Asked of the hardware, whatever its control register is called: volatile keeps the compiler from answering.
template <class T>
bool keeps_subnormals() {
  const volatile T smallest = std::numeric_limits<T>::denorm_min(), normal = std::numeric_limits<T>::min();
  const volatile T half = normal * T(0.5);   // flush-to-zero makes this 0
  const volatile T twice = smallest * T(2);  // denormals-are-zero makes this 0
  return half != T(0) && twice != T(0);
}

template <class T>
bool rounds_to_nearest() {
  const volatile T one = 1, tiny = std::numeric_limits<T>::epsilon() / 4;
  const volatile T up = one + tiny, down = -one - tiny, below = one - tiny / 2;
  return up == one && down == -one && below == one;
}

}  // namespace

std::string float_environment_fault() {
  if (!rounds_to_nearest<double>() || !rounds_to_nearest<float>()) return "the rounding mode is not to nearest";
  if (!keeps_subnormals<double>() || !keeps_subnormals<float>()) return "subnormal numbers are flushed to zero";
  return "";
}

}  // namespace attest
