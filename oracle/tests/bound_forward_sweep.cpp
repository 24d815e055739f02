#include "oracle/tests/bound_forward_sweep.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace attest::bound_test {
namespace {

constexpr double lambda = 6;

double ratio(Quad got, Quad want, double bound) {
  const double e = static_cast<double>(quad_abs(got - want));
  return e == 0 ? 0 : e / bound;
}

}  // namespace

void check_row(const SimulatedKernel& s, Kind kind, std::int64_t n, std::int64_t d, std::int64_t d_v,
               std::uint64_t seed, Tally& t) {
  Random r(seed);
  SimulatedKernel setup = s;
  setup.block_k = 1 + r.below(r.below(2) ? 64 : 8);
  RowValues x = make_row(kind, n, d, d_v, s.in, setup.block_k, r);
  if (s.contract.scale_narrowed) x.scale = 0.1 * (1 + r.uniform());
  setup.keys_per_split = (x.n + setup.splits - 1) / setup.splits;
  const Reference ref = reference(x, s.contract.acc_dtype == ATTN_FP64);
  const RowBound b = forward_bound(setup.contract, setup.plan(x.n), x.row(), ref.stats, setup.out, true);
  char where[160];
  std::snprintf(where, sizeof where, "kind %d n %ld d %ld block %ld seed %lu T %.2g", static_cast<int>(kind),
                static_cast<long>(x.n), static_cast<long>(d), static_cast<long>(setup.block_k),
                static_cast<unsigned long>(seed), b.weight_error);
  const auto fail = [&](const char* what, double q) {
    ++t.violations;
    ADD_FAILURE() << setup.name << " " << what << " " << where << ": error/bound " << q;
  };
  for (const Errors errors : {Errors::random, Errors::extreme, Errors::low}) {
    const bool searched = errors == Errors::extreme;
    const Output got = simulate(setup, x, errors, seed);
    for (std::int64_t e = 0; e < d_v; ++e) {
      const ElementBound& bound = b.o[e];
      ++t.elements;
      if (bound.deterministic == HUGE_VAL) {
        ++t.admitted;
        continue;
      }
      const double q = ratio(got.o[e], ref.o[e], bound.deterministic);
      t.by_kind[static_cast<int>(kind)] = std::max(t.by_kind[static_cast<int>(kind)], q);
      t.o.take(q, where);
      if (!(q <= 1)) fail("O", q);
      if (!b.expected_valid || searched) continue;
      ++t.expected;
      const double x6 = ratio(got.o[e], ref.o[e], expected_bound(bound, ref.stats.o[e], lambda));
      t.expected_by_kind[static_cast<int>(kind)] = std::max(t.expected_by_kind[static_cast<int>(kind)], x6);
      t.expected_o.take(x6, where);
      if (!(x6 <= 1)) fail("O, expected tier", x6);
    }
    if (b.lse.deterministic == HUGE_VAL) continue;
    const double q = ratio(got.lse, ref.lse, b.lse.deterministic);
    t.lse.take(q, where);
    if (!(q <= 1)) fail("LSE", q);
    if (!b.expected_valid || searched) continue;
    const double x6 = ratio(got.lse, ref.lse, expected_bound(b.lse, ref.stats.lse, lambda));
    t.expected_lse.take(x6, where);
    if (!(x6 <= 1)) fail("LSE, expected tier", x6);
  }
}

namespace {

void print_by_kind(const char* title, const std::map<int, double>& by_kind) {
  std::printf("  %s", title);
  for (const auto& [kind, q] : by_kind) std::printf(" %d:%.3f", kind, q);
  std::printf("\n");
}

}  // namespace

std::int64_t sweep(std::int64_t rows, std::uint64_t seed0) {
  std::int64_t elements = 0;
  std::uint64_t which = 0;
  for (const SimulatedKernel& s : make_setups()) {
    Tally t;
    ++which;
    const bool wide = s.contract.acc_dtype == ATTN_FP64;
    for (const Kind kind : all_kinds) {
      for (std::int64_t i = 0; i < rows && t.violations < 6; ++i) {
        const std::uint64_t seed = (seed0 * 1009 + which) * 1000003 + static_cast<std::uint64_t>(kind) * 7919 + i * 13;
        Random r(seed);
        const std::int64_t most = wide ? 64 : i % 8 == 7 ? 512 : i % 4 == 0 ? 12 : 128;
        const std::int64_t n = 1 + r.below(most), depth = r.below(3);
        check_row(s, kind, n, depth == 0 ? 1 : depth == 1 ? 16 : 1 + r.below(64), wide ? 8 : 24, seed, t);
      }
    }
    std::printf(
        "%-32s %7ld elements, %ld admitted; largest error/bound: O %.3f (%s), LSE %.3f; %ld expected: O %.3f (%s), LSE "
        "%.3f\n",
        s.name.c_str(), static_cast<long>(t.elements), static_cast<long>(t.admitted), t.o.ratio, t.o.where.c_str(),
        t.lse.ratio, static_cast<long>(t.expected), t.expected_o.ratio, t.expected_o.where.c_str(),
        t.expected_lse.ratio);
    if (std::getenv("ATTEST_BOUND_BY_KIND")) {
      print_by_kind("deterministic", t.by_kind);
      print_by_kind("expected     ", t.expected_by_kind);
    }
    elements += t.elements;
    EXPECT_EQ(t.violations, 0) << s.name;
    // A kernel that rounds P comes close to its bound before output rounding, or the bound is too loose to see it.
    const bool rounds_p = s.contract.p_dtype != s.contract.acc_dtype;
    if (rounds_p && attn_dtype_of(s.out) == s.contract.acc_dtype) {
      EXPECT_GT(t.o.ratio, 0.3) << s.name;
    }
  }
  std::printf("%ld elements of O\n", static_cast<long>(elements));
  return elements;
}

}  // namespace attest::bound_test
