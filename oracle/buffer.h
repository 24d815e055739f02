// One tensor in memory between two guard zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace attest {

class Buffer {
 public:
  static constexpr std::int64_t guard_bytes = 256;

  // `bytes` of payload, aligned to 64 and filled with `fill`; the guard zones touch it on both sides.
  Buffer(std::int64_t bytes, std::uint8_t fill);

  std::byte* data() { return payload_; }
  const std::byte* data() const { return payload_; }
  std::int64_t size() const { return size_; }

  // Offset in bytes from the payload's begin of the first guard byte that has changed (negative: before it).
  std::optional<std::int64_t> broken_guard() const;

 private:
  // Varies with the address, so that a shifted copy of a guard zone is no guard zone.
  static std::byte guard(std::int64_t offset) {
    return static_cast<std::byte>(0xC9 ^ (static_cast<std::uint64_t>(offset) * 29 & 0xff));
  }
  std::unique_ptr<std::byte[]> memory_;
  std::byte* payload_;
  std::int64_t size_;
};

}  // namespace attest
