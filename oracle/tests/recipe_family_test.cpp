// Families keep what they promise, in every storage format, and are a function of seed and shape alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "oracle/format.h"
#include "oracle/row.h"
#include "oracle/tests/golden.h"

namespace attest {
namespace {

constexpr std::int64_t block = 8, keys = 37;
const std::vector<DType> formats = {DType::fp64, DType::fp32, DType::fp16, DType::bf16};

Case make(std::string_view family, Named<double> parameters = {}) {
  Case c;
  c.values.family = family;
  c.values.seed = 42;
  c.values.parameters = std::move(parameters);
  c.shape.q_heads = 4;
  c.shape.kv_heads = 2;
  c.shape.tq = 3;
  c.shape.tk = keys;
  c.shape.d_qk = 16;
  c.shape.d_v = 5;
  c.tiling.block_k = block;
  return c;
}

Formats in(DType storage) { return {storage, storage == DType::fp64 ? DType::fp64 : DType::fp32}; }

// Calls check(format, scores of a row) for every format and row.
template <class F>
void for_rows(const Case& c, F check) {
  for (DType format : formats) {
    const Problem p(c, in(format));
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t i = 0; i < c.shape.tq; ++i) {
        SCOPED_TRACE(c.values.family + " " + std::string(name(format)));
        const RowStats stats = row_stats(make_row(p, 0, h, i));
        ASSERT_TRUE(stats.finite);
        std::vector<double> scores = stats.x;
        for (double& s : scores) s *= p.scale();
        check(format, scores);
      }
  }
}

TEST(RecipeFamily, GoldenHashesAreTheCommittedOnes) {
  std::ifstream in(ATTEST_SOURCE_DIR "/oracle/tests/golden.txt");
  const std::string want{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(want, golden_hashes());
}

TEST(RecipeFamily, EveryValueIsFiniteInEveryFormat) {
  for (const Family& family : families())
    for (Op op : {Op::forward, Op::step, Op::merge})
      for (DType format : formats) {
        Case c = make(family.name);
        c.op = op;
        if (op != Op::forward) c.shape = Shape{1, 1, 1, 3, op == Op::step ? keys : 1, 1, 5, op == Op::merge ? 6 : 2};
        const Problem p(c, in(format));
        for (const char* tensor : {"q", "k", "v", "m", "l", "acc", "scores"})
          for (double x : p.input(tensor)) {
            const bool empty_state = std::string_view(tensor) == "m" && x == -INFINITY;
            ASSERT_TRUE(std::isfinite(x) || empty_state) << family.name << " " << tensor << " " << name(format);
          }
      }
}

TEST(RecipeFamily, HugeParametersStayFiniteToo) {
  for (const Family& family : families())
    for (double scale : {0x1p-1000, 0.25, 0x1p1000})
      for (Op op : {Op::forward, Op::step}) {
        Case c = make(family.name);
        for (const auto& [p, unused] : family.parameters) c.values.parameters[std::string(p)] = 0x1p900;
        for (const char* whole : {"state", "pattern", "position", "axis", "tensor", "exponent", "exponent_qk", "share"})
          if (c.values.parameters.count(whole)) c.values.parameters[whole] = 1;
        c.op = op;
        if (op == Op::step) c.shape = Shape{1, 1, 1, 3, keys, 1, 5, 2};
        if (op == Op::forward) c.scale = scale;
        for (const auto& [tensor, xs] : make_values(c))
          for (double x : xs) ASSERT_FALSE(std::isnan(x)) << family.name << " " << tensor;
        const Problem p(c, in(DType::fp16));
        for (const char* tensor : {"q", "k", "v"})
          for (double x : p.input(tensor)) ASSERT_TRUE(std::isfinite(x)) << family.name << " " << tensor;
      }
}

TEST(RecipeFamily, SwingsReachTheirMagnitudeBetweenBlocks) {
  for_rows(make("swings"), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j < s.size(); ++j) ASSERT_NEAR(s[j], (j / block) % 2 == 0 ? -1000 : 1000, 15) << j;
  });
  for_rows(make("swings", {{"pattern", 0}}), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j < s.size(); ++j) ASSERT_NEAR(s[j], j / block < 3 ? -1000 : 1000, 15) << j;
  });
  for_rows(make("swings", {{"pattern", 1}, {"magnitude", 6e4}}), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j < s.size(); ++j) ASSERT_NEAR(s[j], j / block < 3 ? 6e4 : -6e4, 300) << j;
  });
  for_rows(make("swings", {{"pattern", 3}}), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j < s.size(); ++j)
      ASSERT_NEAR(s[j], 1000 * (static_cast<double>(j / block) - 3.5), 25) << j;
  });
}

TEST(RecipeFamily, VeryNegativeScoresAreAllNegative) {
  for (double level : {200.0, 6e4})
    for_rows(make("very-negative", {{"level", level}}), [&](DType, const std::vector<double>& s) {
      for (double x : s) ASSERT_NEAR(x, -level, 10 + level * 0x1p-8);
      ASSERT_NE(s[0], s[1]);  // the softmax is not flat
    });
}

TEST(RecipeFamily, EqualScoresAreEqual) {
  for (const char* family : {"ties", "constant-large", "two-level", "zeros", "exp2-trap"})
    for_rows(make(family), [](DType, const std::vector<double>& s) {
      for (double x : s) ASSERT_EQ(s[0], x);
    });
  for_rows(make("exp2-trap", {{"step", 100}}), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j < s.size(); ++j) ASSERT_NEAR(s[j] - s[0], 100.0 * static_cast<double>(j / block), 2);
    ASSERT_NEAR(s[0], 133120, 133120 * 0x1p-8);
  });
  Case huge = make("constant-large");  // the raw score of the fp16 saturation report: 32 * 32 * 128
  huge.shape.d_qk = 128;
  huge.scale = 1;
  for_rows(huge, [](DType, const std::vector<double>& s) { ASSERT_EQ(131072, s[0]); });
}

TEST(RecipeFamily, NearTiesDifferByMultiplesOfTheGap) {
  for_rows(make("near-ties", {{"level", 1000}}), [](DType, const std::vector<double>& s) {
    bool differ = false;
    for (double x : s) {
      const double steps = (x - *std::min_element(s.begin(), s.end())) * 0x1p10;
      ASSERT_NEAR(steps, std::round(steps), 0.02);
      ASSERT_LE(steps, 3.01);
      differ = differ || x != s[0];
    }
    ASSERT_TRUE(differ);
  });
}

TEST(RecipeFamily, NeedleStandsWhereItIsTold) {
  for (double position : {-1.0, 0.0, 7.0, 36.0})
    for_rows(make("needle", {{"position", position}}), [&](DType, const std::vector<double>& s) {
      const auto at = std::max_element(s.begin(), s.end()) - s.begin();
      ASSERT_EQ(position < 0 ? block : static_cast<std::int64_t>(position), at);
      for (std::size_t j = 0; j < s.size(); ++j)
        if (static_cast<std::ptrdiff_t>(j) != at) {
          ASSERT_GT(s[static_cast<std::size_t>(at)] - s[j], 35);
        }
    });
}

TEST(RecipeFamily, BlockMaximaMoveAsNamed) {
  const auto maximum = [](const std::vector<double>& s, std::int64_t b) {
    const auto first = s.begin() + b * block;
    return *std::max_element(first, std::min(first + block, s.end()));
  };
  for_rows(make("ascending"), [&](DType, const std::vector<double>& s) {
    for (std::int64_t b = 1; b < 5; ++b) ASSERT_GT(maximum(s, b), maximum(s, b - 1));
  });
  for_rows(make("max-then-lower"), [&](DType, const std::vector<double>& s) {
    ASSERT_NEAR(maximum(s, 0), 200, 6);
    for (std::int64_t b = 1; b < 5; ++b) ASSERT_NEAR(maximum(s, b), 0, 6);
  });
  for_rows(make("lower-then-max"), [&](DType, const std::vector<double>& s) {
    ASSERT_NEAR(maximum(s, 4), 200, 6);
    for (std::int64_t b = 0; b < 4; ++b) ASSERT_NEAR(maximum(s, b), 0, 6);
  });
}

TEST(RecipeFamily, ValuesHaveTheirPatterns) {
  const auto v = [](std::string_view family, Named<double> parameters = {}) {
    return make_values(make(family, std::move(parameters))).at("v");  // [1, 2, 37, 5]
  };
  const auto one_hot = v("one-hot-v"), key = v("index-v"), head = v("index-v", {{"axis", 0}});
  const auto halves = v("two-level"), constant = v("constant-v", {{"value", 20000}}), big = v("cancelling-v");
  for (std::size_t i = 0; i < one_hot.size(); ++i) {
    const std::size_t h = i / 185, j = i / 5 % 37, e = i % 5;
    ASSERT_EQ(j % 5 == e ? 1 : 0, one_hot[i]);
    ASSERT_EQ(static_cast<double>(j), key[i]);
    ASSERT_EQ(static_cast<double>(h), head[i]);
    ASSERT_EQ(2 * j < 37 ? 0 : 1, halves[i]);
    ASSERT_EQ(20000, constant[i]);
    ASSERT_NEAR(big[i], j % 2 == 0 ? 1000 : -1000, 8.3);
  }
  for_rows(make("cancelling-v"), [](DType, const std::vector<double>& s) {
    for (std::size_t j = 0; j + 1 < s.size(); j += 2) ASSERT_EQ(s[j], s[j + 1]);  // the parts cancel
  });
}

TEST(RecipeFamily, SubnormalsAreSubnormalInTheFormatOfTheCase) {
  for (DType format : formats) {
    Case c = make("subnormal", {{"tensor", 2}});
    c.dtype = format;
    const double normal = format == DType::fp16 ? 0x1p-14 : format == DType::fp64 ? 0x1p-1022 : 0x1p-126;
    const Problem p(c, in(format));
    for (const char* tensor : {"k", "v"}) {
      int zeros = 0;
      for (double x : p.input(tensor)) {
        ASSERT_LE(std::abs(x), normal) << name(format);
        zeros += x == 0;
      }
      ASSERT_EQ(0, zeros) << name(format);
    }
  }
}

TEST(RecipeFamily, OutliersAndWideRangesReachFar) {
  Case c = make("outliers");
  c.shape.tk = 20000;
  const auto v = make_values(c).at("v");
  const auto far = std::count_if(v.begin(), v.end(), [](double x) { return std::abs(x) > 6; });
  // 200,000 entries, 200 of them with deviation sqrt(101): 55 % of those lie beyond 6, of the others 2e-9.
  EXPECT_NEAR(static_cast<double>(far), 110, 45);
  const auto wide = make_values(make("wide-range")).at("v");
  const auto [low, high] =
      std::minmax_element(wide.begin(), wide.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  EXPECT_LT(std::abs(*low), 0x1p-8);
  EXPECT_GT(std::abs(*high), 0x1p9);
}

TEST(RecipeFamily, OneTensorsExtentLeavesTheOthersAlone) {
  for (const Family& family : families()) {
    const Case c = make(family.name);
    Case longer = c;
    longer.shape.tq = 9;
    Case wider = c;
    wider.shape.d_v = 11;
    const auto a = make_values(c), b = make_values(longer), w = make_values(wider);
    EXPECT_EQ(a.at("k"), b.at("k")) << family.name;
    EXPECT_EQ(a.at("v"), b.at("v")) << family.name;
    EXPECT_EQ(a.at("q"), w.at("q")) << family.name;
    EXPECT_EQ(a.at("k"), w.at("k")) << family.name;
  }
}

TEST(RecipeFamily, StatesAreEmptyPlausibleOrMixed) {
  for (StateKind kind : {StateKind::ml, StateKind::mla, StateKind::olse})
    for (double state : {0.0, 1.0, 2.0}) {
      Case c;
      c.op = Op::merge;
      c.state = kind;
      c.shape.parts = 40;
      c.shape.tq = 3;
      c.shape.d_v = 2;
      c.values.family = "swings";
      c.values.parameters["state"] = state;
      const auto values = make_values(c);
      int empty = 0;
      const auto& m = values.at("m");
      for (std::size_t i = 0; i < m.size(); ++i) {
        const bool is_empty = m[i] == -INFINITY;
        empty += is_empty;
        if (kind != StateKind::olse) {
          ASSERT_TRUE(is_empty ? values.at("l")[i] == 0 : values.at("l")[i] >= 1);
        }
        if (kind != StateKind::ml && is_empty) {
          ASSERT_EQ(0, values.at("acc")[2 * i + 1]);
        }
        if (!is_empty) {  // parts far apart
          ASSERT_NEAR(m[i], i / 3 % 2 == 0 ? -1000 : 1000, 12);
        }
      }
      if (state == 0) {
        EXPECT_EQ(120, empty);
      }
      if (state == 1) {
        EXPECT_EQ(0, empty);
      }
      if (state == 2) {
        EXPECT_NEAR(empty, 30, 20);
      }
      EXPECT_EQ(kind == StateKind::olse, values.find("l") == values.end());
      EXPECT_EQ(kind == StateKind::ml, values.find("acc") == values.end());
    }
}

TEST(RecipeFamily, StepScoresCarryTheMask) {
  Case c;
  c.op = Op::step;
  c.shape.tq = 4;
  c.shape.tk = 20;
  c.shape.d_v = 2;
  c.tiling.block_k = 8;
  c.mask.visible.pattern = "first-blocks-empty";
  c.mask.causal = Causal::bottom_right;
  const auto scores = make_values(c).at("scores");
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 20; ++j) {
      const bool visible = j >= 16 && j <= i + 16;
      ASSERT_EQ(!visible, scores[static_cast<std::size_t>(i * 20 + j)] == -INFINITY) << i << " " << j;
    }
}

}  // namespace
}  // namespace attest
