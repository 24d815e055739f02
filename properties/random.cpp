#include "oracle/philox.h"
#include "properties/generate.h"

namespace attest {

Random::Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

// No state but a counter: a generator is copied, resumed and reproduced by three numbers.
std::uint64_t Random::bits() { return RandomStream(seed_, stream_).bits(counter_++); }

// The high half of a 128-bit product: no <random> distribution, and the bias (range / 2^64) does not matter here.
std::int64_t Random::between(std::int64_t lo, std::int64_t hi) {
  const auto range = static_cast<std::uint64_t>(hi - lo) + 1;
  if (range == 0) return static_cast<std::int64_t>(bits());
  __extension__ using Wide = unsigned __int128;
  return lo + static_cast<std::int64_t>(static_cast<std::uint64_t>((static_cast<Wide>(bits()) * range) >> 64));
}

double Random::unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

}  // namespace attest
