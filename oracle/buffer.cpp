#include "oracle/buffer.h"

#include <cstring>

namespace attest {

Buffer::Buffer(std::int64_t bytes, std::uint8_t fill)
    : memory_(new std::byte[static_cast<std::size_t>(bytes + 2 * guard_bytes + 64)]), size_(bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.get()) + guard_bytes;
  payload_ = memory_.get() + guard_bytes + ((64 - first % 64) % 64);
  std::memset(payload_, fill, static_cast<std::size_t>(bytes));
  for (std::int64_t i = 1; i <= guard_bytes; ++i) {
    payload_[-i] = guard(-i);
    payload_[size_ + i - 1] = guard(size_ + i - 1);
  }
}

std::optional<std::int64_t> Buffer::broken_guard() const {
  for (std::int64_t i = 1; i <= guard_bytes; ++i) {
    if (payload_[-i] != guard(-i)) return -i;
    if (payload_[size_ + i - 1] != guard(size_ + i - 1)) return size_ + i - 1;
  }
  return std::nullopt;
}

}  // namespace attest
