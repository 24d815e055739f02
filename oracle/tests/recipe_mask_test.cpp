// Every mask pattern masks what its name says.
#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/recipe.h"

namespace attest {
namespace {

constexpr std::int64_t rows = 12, keys = 23, block = 5;

std::vector<std::uint8_t> mask(const char* pattern, double density = 0.5, std::uint64_t seed = 3) {
  MaskTensor m;
  m.pattern = pattern;
  m.seed = seed;
  m.density = density;
  Shape shape;
  shape.tq = rows;
  shape.tk = keys;
  return make_mask(m, shape, block).visible;
}

// True if exactly the entries that the predicate names are visible.
template <class P>
bool is(const std::vector<std::uint8_t>& m, P visible) {
  if (m.size() != static_cast<std::size_t>(rows * keys)) return false;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < keys; ++j)
      if ((m[static_cast<std::size_t>(i * keys + j)] != 0) != visible(i, j)) return false;
  return true;
}

TEST(MaskPattern, MasksWhatItsNameSays) {
  EXPECT_TRUE(is(mask("all-visible"), [](auto, auto) { return true; }));
  EXPECT_TRUE(is(mask("first-row-empty"), [](auto i, auto) { return i > 0; }));
  EXPECT_TRUE(is(mask("block-empty"), [](auto, auto j) { return j < 10 || j >= 15; }));  // the third of five blocks
  EXPECT_TRUE(is(mask("first-blocks-empty"), [](auto, auto j) { return j >= 20; }));
  EXPECT_TRUE(is(mask("last-key-only"), [](auto, auto j) { return j == keys - 1; }));
  EXPECT_TRUE(is(mask("checkerboard"), [](auto i, auto j) { return (i + j) % 2 == 0; }));
  EXPECT_TRUE(is(mask("random", 0), [](auto, auto) { return false; }));
  EXPECT_TRUE(is(mask("random", 1), [](auto, auto) { return true; }));
}

TEST(MaskPattern, RandomHasItsDensity) {
  const auto m = mask("random", 0.25);
  const auto visible = std::count(m.begin(), m.end(), 1);
  EXPECT_NEAR(static_cast<double>(visible), 0.25 * rows * keys, 4 * 7.2);  // four standard deviations
}

TEST(MaskPattern, RowEmptyHasEmptyAndFullRowsOnlyAtEverySeed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto m = mask("row-empty", 0.5, seed);
    int empty = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto visible = std::count(m.begin() + i * keys, m.begin() + (i + 1) * keys, 1);
      ASSERT_TRUE(visible == 0 || visible == keys);
      empty += visible == 0;
    }
    ASSERT_GE(empty, 1) << "seed " << seed;
  }
}

TEST(MaskPattern, TakesTheExtentsOfABroadcast) {
  MaskTensor m;
  m.pattern = "first-row-empty";
  m.mask_shape = {1, 1, rows, 1};
  Shape shape;
  shape.batch = 3;
  shape.q_heads = 2;
  shape.tq = rows;
  shape.tk = keys;
  const MaskValues values = make_mask(m, shape, block);
  ASSERT_EQ(static_cast<std::size_t>(rows), values.visible.size());
  EXPECT_EQ(0, values.visible[0]);
  EXPECT_EQ(1, values.visible[1]);
}

TEST(MaskPattern, NoKeysOrNoRowsMakeAnEmptyMask) {
  for (std::string_view pattern : mask_patterns()) {
    MaskTensor m;
    m.pattern = pattern;
    Shape shape;
    shape.tq = 0;
    EXPECT_TRUE(make_mask(m, shape, 0).visible.empty());
    shape.tq = 4;
    shape.tk = 0;
    EXPECT_TRUE(make_mask(m, shape, 0).visible.empty());
  }
}

}  // namespace
}  // namespace attest
