#include "properties/field/values.h"

#include <cmath>

#include "oracle/philox.h"

namespace attest::field {
namespace {

constexpr std::string_view kNames[] = {"q", "k", "v"};

// draw(stream, index, tensor) for every element; tensor is 0 for q, 1 for k, 2 for v.
template <class Draw>
void lay(Case& c, std::uint64_t seed, Draw draw) {
  for (int t = 0; t < 3; ++t) {
    std::int64_t count = 1;
    for (std::int64_t extent : input_shape(c, kNames[t])) count *= extent;
    RandomStream stream(seed, static_cast<std::uint64_t>(t) + 1);
    TensorValues& values = c.values.tensors[std::string(kNames[t])];
    values.literal.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values.literal[static_cast<std::size_t>(i)] = draw(stream, i, t);
  }
  c.values.family = "zeros";  // everything is literal; the recipe has no say
}

double whole(RandomStream& r, std::int64_t i, int most) {
  return std::floor(r.uniform(static_cast<std::uint64_t>(i)) * (2 * most + 1)) - most;
}

}  // namespace

Fill normal(double sigma, double q_factor) {
  return [=](Case& c, std::uint64_t seed) {
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int t) {
      return (t == 0 ? sigma * q_factor : sigma) * r.normal(static_cast<std::uint64_t>(i));
    });
  };
}

Fill uniform(double low, double high) {
  return [=](Case& c, std::uint64_t seed) {
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int) {
      return low + (high - low) * r.uniform(static_cast<std::uint64_t>(i));
    });
  };
}

Fill integers(int q_most, int kv_most) {
  return [=](Case& c, std::uint64_t seed) {
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int t) { return whole(r, i, t == 0 ? q_most : kv_most); });
  };
}

Fill sparse_integers(double zeros, int most) {
  return [=](Case& c, std::uint64_t seed) {
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int) {
      return r.uniform(static_cast<std::uint64_t>(2 * i + 1)) < zeros ? 0.0 : whole(r, 2 * i, most);
    });
  };
}

Fill level_scores(double level) {
  return [=](Case& c, std::uint64_t seed) {
    const double d = static_cast<double>(c.shape.d_qk);
    const std::int64_t row = c.shape.d_qk, head = row * c.shape.tk;
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int t) {
      if (t == 0) return 1.0;
      if (t == 1) return (i % head < row ? level + 1024 : level) / d;
      return r.normal(static_cast<std::uint64_t>(i));
    });
  };
}

Fill rising_keys() {
  return [](Case& c, std::uint64_t seed) {
    const double d = static_cast<double>(c.shape.d_qk);
    const std::int64_t head = c.shape.d_qk * c.shape.tk;
    lay(c, seed, [=](RandomStream& r, std::int64_t i, int t) {
      if (t == 0) return 8 / d;
      if (t == 1) return i % head < head / 2 ? -8.0 : 64.0;
      return r.normal(static_cast<std::uint64_t>(i));
    });
  };
}

Fill constant(double q, double k, double v) {
  return [=](Case& c, std::uint64_t seed) {
    lay(c, seed, [=](RandomStream&, std::int64_t, int t) { return t == 0 ? q : t == 1 ? k : v; });
  };
}

}  // namespace attest::field
