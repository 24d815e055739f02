// One tensor in memory between two guard zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "oracle/guard_pages.h"

namespace attest {

// Where the payload of a buffer stands. On pages, guard zones fill what the payload leaves of its own pages; beyond
// lies memory that cannot be touched, so that a stray read ends the process as well.
enum class Placement : std::uint8_t {
  heap,        // between guard zones of a fixed size
  page_end,    // it ends where its last page ends, or as near as its alignment allows
  page_begin,  // it begins where its first page begins
};

// The placement of every buffer that this thread makes while the scope lasts; otherwise it is the heap.
class PlacementScope {
 public:
  explicit PlacementScope(Placement placement);
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;

 private:
  Placement before_;
};

class Buffer {
 public:
  static constexpr std::int64_t guard_bytes = 256;

  struct Options {
    std::string_view name = "a buffer";  // for messages about stray accesses
    std::int64_t alignment = 1;          // what the interface promises, at most 64; on the heap it is always 64
    std::int64_t guard = guard_bytes;    // on each side, on the heap
  };

  // `bytes` of payload, filled with `fill`; the guard zones touch it on both sides. Raises std::bad_alloc.
  Buffer(std::int64_t bytes, std::uint8_t fill, const Options& options);
  Buffer(std::int64_t bytes, std::uint8_t fill) : Buffer(bytes, fill, Options()) {}

  std::byte* data() { return payload_; }
  const std::byte* data() const { return payload_; }
  std::int64_t size() const { return size_; }
  std::span<std::byte> guard_before() { return {payload_ - before_, static_cast<std::size_t>(before_)}; }
  std::span<std::byte> guard_after() { return {payload_ + size_, static_cast<std::size_t>(after_)}; }

  // Offset in bytes from the payload's begin of the changed guard byte that is nearest to it (negative: before it).
  std::optional<std::int64_t> broken_guard() const;

  // On pages, writes end the process while it is read-only; on the heap nothing changes.
  void protect(bool read_only);

 private:
  void place_on_heap(const Options& options);
  void place_on_pages(Placement placement, const Options& options);

  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<GuardPages> pages_;
  std::byte* payload_ = nullptr;
  std::int64_t size_, before_ = 0, after_ = 0;
};

}  // namespace attest
