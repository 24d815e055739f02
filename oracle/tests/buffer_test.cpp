// Where a buffer stands, and what is noticed around it: canaries by comparison, pages by the signal.
#include "oracle/buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace attest {
namespace {

constexpr Placement everywhere[] = {Placement::heap, Placement::page_end, Placement::page_begin};
const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));

std::uintptr_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(Buffer, StandsWhereItsPlacementSays) {
  for (const std::int64_t bytes : {0, 1, 2, 60, 64, 4092, 4096, 4100, 100000})
    for (const std::int64_t alignment : {1, 2, 4, 64}) {
      const auto aligned = static_cast<std::uintptr_t>(alignment);
      {
        const PlacementScope scope(Placement::page_end);
        const Buffer b(bytes, 0, {.alignment = alignment});
        const std::uintptr_t end = address(b.data()) + static_cast<std::uintptr_t>(bytes);
        EXPECT_EQ(address(b.data()) % aligned, 0u);
        EXPECT_LT((page - end % page) % page, aligned) << "nearer to the page's end is possible";
      }
      const PlacementScope scope(Placement::page_begin);
      EXPECT_EQ(address(Buffer(bytes, 0, {.alignment = alignment}).data()) % page, 0u);
    }
  EXPECT_EQ(address(Buffer(5, 0).data()) % 64, 0u);
}

TEST(Buffer, ScopesNest) {
  const PlacementScope outer(Placement::page_begin);
  { const PlacementScope inner(Placement::heap); }
  EXPECT_EQ(address(Buffer(100, 0).data()) % page, 0u);
}

TEST(Buffer, EveryGuardByteCounts) {
  for (const Placement placement : everywhere) {
    const PlacementScope scope(placement);
    Buffer b(100, 0x11, {.alignment = 4});
    EXPECT_EQ(b.broken_guard(), std::nullopt);
    const auto broken_by = [&](std::byte& at, std::int64_t offset) {
      at ^= std::byte{1};
      EXPECT_EQ(b.broken_guard(), offset);
      at ^= std::byte{1};
    };
    for (auto& at : b.guard_before()) broken_by(at, &at - b.data());
    for (auto& at : b.guard_after()) broken_by(at, &at - b.data());
    EXPECT_EQ(b.broken_guard(), std::nullopt);
    EXPECT_GT(b.guard_before().size() + b.guard_after().size(), 255u);
  }
}

TEST(Buffer, TheNearestBrokenByteIsNamed) {
  Buffer b(10, 0);
  b.guard_after()[9] ^= std::byte{1};
  b.guard_before()[0] ^= std::byte{1};
  EXPECT_EQ(b.broken_guard(), 19);
}

TEST(Buffer, PagesAreUsedAgainWithFreshContents) {
  const PlacementScope scope(Placement::page_end);
  for (int turn = 0; turn < 3; ++turn) {
    Buffer b(1000, 0x22);
    EXPECT_EQ(b.broken_guard(), std::nullopt);
    for (std::int64_t i = 0; i < b.size(); ++i) ASSERT_EQ(b.data()[i], std::byte{0x22});
    b.guard_before()[0] ^= std::byte{1};
    b.data()[0] = std::byte{0x33};
    b.protect(true);  // a buffer that goes while it is read-only leaves pages that can be written
  }
}

TEST(Buffer, AnAddressIsFoundByName) {
  const PlacementScope scope(Placement::page_end);
  Buffer b(8, 0, {.name = "k", .alignment = 4});
  const Buffer moved = std::move(b);
  const Located past = locate_in_guard_pages(moved.data() + 8), before = locate_in_guard_pages(moved.data() - 70000);
  EXPECT_STREQ(past.name, "k");
  EXPECT_EQ(past.offset, 8);
  EXPECT_EQ(past.size, 8);
  EXPECT_EQ(before.name, nullptr) << "beyond the guard pages";
  EXPECT_EQ(locate_in_guard_pages(&past).name, nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::byte read(const std::byte* at) { return *static_cast<const volatile std::byte*>(at); }
void write(std::byte* at) { *static_cast<volatile std::byte*>(at) = std::byte{0}; }

TEST(BufferDeathTest, AStrayAccessEndsTheProcess) {
  const auto segfault = ::testing::KilledBySignal(SIGSEGV);
  const auto placed = [](Placement placement) {
    const PlacementScope scope(placement);
    return Buffer(40, 0, {.alignment = 4});
  };
  Buffer at_end = placed(Placement::page_end), at_begin = placed(Placement::page_begin);
  EXPECT_EXIT(read(at_end.data() + 40), segfault, "");
  EXPECT_EXIT(write(at_end.data() + 40), segfault, "");
  EXPECT_EXIT(read(at_begin.data() - 1), segfault, "");
  at_end.protect(true);
  EXPECT_EQ(read(at_end.data()), std::byte{0});
  EXPECT_EXIT(write(at_end.data()), segfault, "");
  at_end.protect(false);
  write(at_end.data());
}
#endif

}  // namespace
}  // namespace attest
