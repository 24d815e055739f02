// Memory between pages that cannot be touched: a stray read or write stops at the instruction that makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest {

// Whole pages that can be read and written, with 64 KiB on each side that cannot.
class GuardPages {
 public:
  // At least `bytes` of them, with anything in them. Raises std::bad_alloc.
  explicit GuardPages(std::int64_t bytes);
  ~GuardPages();
  GuardPages(const GuardPages&) = delete;
  GuardPages& operator=(const GuardPages&) = delete;

  std::byte* begin() { return begin_; }
  std::int64_t size() const { return size_; }

  // What stands there, for messages about an address: a name of at most 23 characters, and its bytes.
  void describe(std::string_view name, const std::byte* payload, std::int64_t payload_size);
  // While it is read-only, a write is stopped like one beside it.
  void protect(bool read_only);

 private:
  friend struct NearestPages;
  std::byte* begin_ = nullptr;
  std::int64_t size_ = 0;
  bool read_only_ = false;
  char name_[24] = "";
  const std::byte* payload_ = nullptr;
  std::int64_t payload_size_ = 0;
  GuardPages *next_ = nullptr, *previous_ = nullptr;
};

// Where an address lies among the pages of this process and the guards beside them.
struct Located {
  const char* name;           // nullptr: nowhere near any
  std::int64_t offset, size;  // of the address from the payload's begin, and of the payload, in bytes
};
// For signal handlers: takes no lock and no memory. The pages must not come or go meanwhile.
Located locate_in_guard_pages(const void* address) noexcept;

}  // namespace attest
