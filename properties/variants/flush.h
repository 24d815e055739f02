// Arithmetic that flushes subnormal results to zero, as GPU kernels built with -ftz=true do. Inputs are not flushed.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace attest::variants {

#ifdef __SSE2__
constexpr bool can_flush = true;
#else
constexpr bool can_flush = false;
#endif

// For this thread, while it lives.
class FlushToZero {
 public:
#ifdef __SSE2__
  explicit FlushToZero(bool on) : before_(_mm_getcsr()) {
    if (on) _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON);
  }
  ~FlushToZero() { _mm_setcsr(before_); }
#else
  explicit FlushToZero(bool) {}
#endif
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

#ifdef __SSE2__
 private:
  unsigned before_;
#endif
};

}  // namespace attest::variants
