#include "oracle/buffer.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace attest {
namespace {

thread_local Placement placement_now = Placement::heap;

// A guard byte varies with its offset from the payload, so that a shifted copy of a guard zone is no guard zone. It
// repeats every 256 bytes, so that whole zones are written and compared at once.
constexpr std::byte guard(std::int64_t offset) {
  return static_cast<std::byte>(0xC9 ^ (static_cast<std::uint64_t>(offset) * 29 & 0xff));
}
constexpr std::int64_t kPeriod = 256, kChunk = 4096;
constexpr auto kPattern = [] {
  std::array<std::byte, kChunk + kPeriod> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = guard(static_cast<std::int64_t>(i));
  return bytes;
}();

// Calls part(at, pattern, size) for pieces of the zone [at, at + size), whose first byte has this offset.
template <class Part>
bool all_parts(std::int64_t offset, std::int64_t size, Part part) {
  const std::byte* pattern = kPattern.data() + (offset & (kPeriod - 1));
  for (std::int64_t done = 0; done < size; done += kChunk)
    if (!part(offset + done, pattern, static_cast<std::size_t>(std::min(size - done, kChunk)))) return false;
  return true;
}

}  // namespace

PlacementScope::PlacementScope(Placement placement) : before_(placement_now) { placement_now = placement; }
PlacementScope::~PlacementScope() { placement_now = before_; }

Buffer::Buffer(std::int64_t bytes, std::uint8_t fill, const Options& options) : size_(bytes) {
  if (placement_now == Placement::heap)
    place_on_heap(options);
  else
    place_on_pages(placement_now, options);
  std::memset(payload_, fill, static_cast<std::size_t>(bytes));
  const auto write = [&](std::int64_t at, const std::byte* pattern, std::size_t n) {
    std::memcpy(payload_ + at, pattern, n);
    return true;
  };
  all_parts(-before_, before_, write);
  all_parts(size_, after_, write);
}

void Buffer::place_on_heap(const Options& options) {
  before_ = after_ = options.guard;
  memory_.reset(new std::byte[static_cast<std::size_t>(size_ + 2 * options.guard + 64)]);
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.get()) + static_cast<std::uintptr_t>(options.guard);
  payload_ = memory_.get() + options.guard + ((64 - first % 64) % 64);
}

void Buffer::place_on_pages(Placement placement, const Options& options) {
  const std::int64_t aligned = (size_ + options.alignment - 1) / options.alignment * options.alignment;
  pages_ = std::make_unique<GuardPages>(aligned);
  before_ = placement == Placement::page_end ? pages_->size() - aligned : 0;
  after_ = pages_->size() - before_ - size_;
  payload_ = pages_->begin() + before_;
  pages_->describe(options.name, payload_, size_);
}

std::optional<std::int64_t> Buffer::broken_guard() const {
  const auto same = [&](std::int64_t at, const std::byte* pattern, std::size_t n) {
    return std::memcmp(payload_ + at, pattern, n) == 0;
  };
  if (all_parts(-before_, before_, same) && all_parts(size_, after_, same)) return std::nullopt;
  for (std::int64_t i = 1; i <= std::max(before_, after_); ++i) {
    if (i <= before_ && payload_[-i] != guard(-i)) return -i;
    if (i <= after_ && payload_[size_ + i - 1] != guard(size_ + i - 1)) return size_ + i - 1;
  }
  return std::nullopt;
}

void Buffer::protect(bool read_only) {
  if (pages_) pages_->protect(read_only);
}

}  // namespace attest
