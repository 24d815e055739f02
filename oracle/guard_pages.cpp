#include "oracle/guard_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>

namespace attest {
namespace {

constexpr std::int64_t kGuard = 1 << 16;  // a multiple of every page size in use; it takes no memory

std::mutex list_lock;
GuardPages* first = nullptr;

std::int64_t page_size() {
  static const std::int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

std::byte* map(std::int64_t size) {
  void* whole = mmap(nullptr, static_cast<std::size_t>(size + 2 * kGuard), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) throw std::bad_alloc();
  std::byte* begin = static_cast<std::byte*>(whole) + kGuard;
  if (mprotect(begin, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE) == 0) return begin;
  munmap(whole, static_cast<std::size_t>(size + 2 * kGuard));
  throw std::bad_alloc();
}

void unmap(std::byte* begin, std::int64_t size) { munmap(begin - kGuard, static_cast<std::size_t>(size + 2 * kGuard)); }

// Small pages of this thread that are free again: asking the system for each tensor of each run would take half as long
// as the checks themselves.
class Spare {
 public:
  std::byte* take(std::int64_t pages) {
    if (pages > kMostPages || free_[pages - 1].count == 0) return nullptr;
    return free_[pages - 1].at[--free_[pages - 1].count];
  }
  bool give(std::int64_t pages, std::byte* begin) {
    if (pages > kMostPages || free_[pages - 1].count == kMostOfASize) return false;
    free_[pages - 1].at[free_[pages - 1].count++] = begin;
    return true;
  }
  ~Spare() {
    for (std::size_t i = 0; i < free_.size(); ++i)
      while (free_[i].count > 0) unmap(free_[i].at[--free_[i].count], static_cast<std::int64_t>(i + 1) * page_size());
  }

 private:
  static constexpr std::int64_t kMostPages = 16;
  static constexpr std::size_t kMostOfASize = 32;
  struct OfASize {
    std::array<std::byte*, kMostOfASize> at;
    std::size_t count = 0;
  };
  std::array<OfASize, kMostPages> free_;  // no allocation: it must work where memory is exhausted
};
thread_local Spare spare;

}  // namespace

GuardPages::GuardPages(std::int64_t bytes) {
  const std::int64_t page = page_size(), pages = std::max<std::int64_t>((bytes + page - 1) / page, 1);
  size_ = pages * page;
  begin_ = spare.take(pages);
  if (!begin_) begin_ = map(size_);
  const std::scoped_lock hold(list_lock);
  next_ = first;
  if (first) first->previous_ = this;
  first = this;
}

GuardPages::~GuardPages() {
  {
    const std::scoped_lock hold(list_lock);
    (previous_ ? previous_->next_ : first) = next_;
    if (next_) next_->previous_ = previous_;
  }
  if (read_only_) protect(false);
  if (!spare.give(size_ / page_size(), begin_)) unmap(begin_, size_);
}

void GuardPages::describe(std::string_view name, const std::byte* payload, std::int64_t payload_size) {
  const std::size_t n = std::min(name.size(), sizeof name_ - 1);
  std::memcpy(name_, name.data(), n);
  name_[n] = 0;
  payload_ = payload;
  payload_size_ = payload_size;
}

void GuardPages::protect(bool read_only) {
  mprotect(begin_, static_cast<std::size_t>(size_), read_only ? PROT_READ : PROT_READ | PROT_WRITE);
  read_only_ = read_only;
}

struct NearestPages {
  static Located find(std::uintptr_t address) {
    for (const GuardPages* p = first; p; p = p->next_) {
      const auto begin = reinterpret_cast<std::uintptr_t>(p->begin_);
      if (address < begin - kGuard || address >= begin + static_cast<std::uintptr_t>(p->size_ + kGuard)) continue;
      return {p->name_, static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(p->payload_)),
              p->payload_size_};
    }
    return {nullptr, 0, 0};
  }
};

Located locate_in_guard_pages(const void* address) noexcept {
  return NearestPages::find(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace attest
