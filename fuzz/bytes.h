// A total reader of fuzz input: it never runs dry (missing bytes are 0) and every byte string means something, so that
// no input is thrown away and small mutations stay small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace attest::fuzz {

class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}

  std::uint8_t byte() { return next_ < data_.size() ? data_[next_++] : std::uint8_t{0}; }
  std::uint16_t word() {
    const std::uint16_t low = byte();
    return static_cast<std::uint16_t>(low | byte() << 8);
  }
  std::uint64_t quad() {
    std::uint64_t all = 0;
    for (int shift = 0; shift < 64; shift += 16) all |= static_cast<std::uint64_t>(word()) << shift;
    return all;
  }

  // lo..hi inclusive, hi - lo <= 255. Byte 0, and so input that has ended, gives `start`, or lo.
  std::int64_t between(std::int64_t lo, std::int64_t hi) { return between(lo, hi, lo); }
  std::int64_t between(std::int64_t lo, std::int64_t hi, std::int64_t start) {
    return lo + (start - lo + byte()) % (hi - lo + 1);
  }
  bool flag() { return byte() & 1; }
  // An index into a container of n > 0 elements.
  std::size_t index(std::size_t n) { return byte() % n; }
  bool empty() const { return next_ >= data_.size(); }

 private:
  std::span<const std::uint8_t> data_;
  std::size_t next_ = 0;
};

}  // namespace attest::fuzz
