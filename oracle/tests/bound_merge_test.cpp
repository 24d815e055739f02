// merge_bound holds at every node of random trees, for (m, l), (m, l, acc) and (O, LSE).
#include <gtest/gtest.h>

#include <cstdio>

#include "oracle/tests/bound_setups.h"
#include "oracle/tests/bound_state_simulator.h"

namespace attest::bound_test {
namespace {

template <class R>
struct Node {
  State<R> got;
  State<Quad> exact;
  StateBound bound;
};

template <class R>
Node<R> leaf(StateKind kind, int family, std::int64_t d, Random& r) {
  Node<R> n;
  const double spread = family == 0 ? 1 : family == 1 ? 30 : family == 2 ? 1000 : 0;
  n.got.m = static_cast<R>(family == 3 ? 5.0 : spread * r.normal());
  if (family == 4) n.got.m = static_cast<R>(5 + 1e-6 * r.normal());
  n.got.l = static_cast<R>(kind == StateKind::olse ? 0 : 1 + 10 * r.uniform());
  for (std::int64_t e = 0; e < d; ++e) {
    n.got.acc.push_back(static_cast<R>((r.below(8) ? 1 : 100) * r.normal()));
  }
  if (r.below(6) == 0) {
    n.got = {-std::numeric_limits<R>::infinity(), 0, std::vector<R>(d, R(0))};
  }
  n.exact.m = Quad(n.got.m);
  n.exact.l = Quad(n.got.l);
  for (const R a : n.got.acc) n.exact.acc.push_back(Quad(a));
  n.bound.acc.assign(d, 0.0);
  return n;
}

template <class R>
MergeSide side(StateKind kind, const Node<R>& n, std::vector<double>& acc) {
  acc.clear();
  for (const Quad a : n.exact.acc) acc.push_back(static_cast<double>(a));
  return {kind, static_cast<double>(n.exact.m), static_cast<double>(n.exact.l), acc, n.bound};
}

struct Worst {
  double m = 0, l = 0, acc = 0;
};

double over(Quad got, Quad want, double bound) {
  if (got == want) return 0;
  return static_cast<double>(quad_abs(got - want)) / bound;
}

template <class R>
void run(const char* name, StateKind kind, const attn_contract& c, int trees) {
  Worst worst;
  std::int64_t merges = 0;
  for (int tree = 0; tree < trees; ++tree) {
    Random r(static_cast<std::uint64_t>(tree) * 31 + 5);
    Functions<R> f(c, static_cast<std::uint64_t>(tree));
    const int family = static_cast<int>(r.below(5));
    const std::int64_t d = kind == StateKind::ml ? 0 : 3;
    std::vector<Node<R>> nodes;
    for (std::int64_t i = 2 + r.below(63); i > 0; --i) nodes.push_back(leaf<R>(kind, family, d, r));
    while (nodes.size() > 1) {
      const std::int64_t i = r.below(static_cast<std::int64_t>(nodes.size()));
      const Node<R> a = nodes[i];
      nodes.erase(nodes.begin() + i);
      Node<R>& b = nodes[r.below(static_cast<std::int64_t>(nodes.size()))];
      std::vector<double> acc_a, acc_b;
      Node<R> merged;
      merged.bound = merge_bound(c, side(kind, a, acc_a), side(kind, b, acc_b));
      merged.got = simulate_merge(c, f, kind, a.got, b.got);
      merged.exact = exact_merge(kind, a.exact, b.exact);
      ++merges;
      const auto check = [&](const char* what, double q, double& most) {
        ASSERT_LE(q, 1) << name << " " << what << " tree " << tree << " family " << family;
        most = std::max(most, q);
      };
      check("m", over(Quad(merged.got.m), merged.exact.m, merged.bound.m), worst.m);
      if (kind != StateKind::olse) check("l", over(Quad(merged.got.l), merged.exact.l, merged.bound.l), worst.l);
      for (std::int64_t e = 0; e < d; ++e) {
        check("acc", over(Quad(merged.got.acc[e]), merged.exact.acc[e], merged.bound.acc[e]), worst.acc);
      }
      b = merged;
    }
  }
  std::printf("%-28s %ld merges; largest error/bound: m %.3f, l %.3f, acc %.3f\n", name, static_cast<long>(merges),
              worst.m, worst.l, worst.acc);
  EXPECT_GT(std::max({worst.m, worst.l, worst.acc}), 0.3) << "too loose to see a kernel";
}

TEST(BoundMerge, HoldsAtEveryNodeOfATree) {
  attn_contract c = contract_of(ATTN_ALG_MERGE, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  c.split_merge = ATTN_MERGE_RENORMALISED;
  run<float>("fp32 (m, l)", StateKind::ml, c, 1000);
  run<float>("fp32 (m, l, acc)", StateKind::mla, c, 1000);
  run<float>("fp32 (O, LSE)", StateKind::olse, c, 1500);
  c.split_merge = ATTN_MERGE_DIVISION_FREE;
  run<float>("fp32 (O, LSE) division-free", StateKind::olse, c, 1500);
  c = contract_of(ATTN_ALG_MERGE, ATTN_FP64, ATTN_FP64, ATTN_FP64);
  c.split_merge = ATTN_MERGE_RENORMALISED;
  run<double>("fp64 (m, l, acc)", StateKind::mla, c, 60);
  run<double>("fp64 (O, LSE)", StateKind::olse, c, 60);
}

TEST(BoundMerge, EmptyIsTheIdentity) {
  const attn_contract c = contract_of(ATTN_ALG_MERGE, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  const std::vector<double> o{1, 2}, zero{0, 0};
  StateBound error;
  error.m = 0.125;
  error.acc = {0.25, 0.5};
  const MergeSide some{StateKind::olse, 3, 0, o, error}, empty{StateKind::olse, -HUGE_VAL, 0, zero, {}};
  for (const StateBound& b : {merge_bound(c, some, empty), merge_bound(c, empty, some)}) {
    EXPECT_EQ(b.m, 0.125);
    EXPECT_EQ(b.acc, (std::vector<double>{0.25, 0.5}));
  }
  const StateBound none = merge_bound(c, empty, empty);
  EXPECT_EQ(none.m, 0);
  EXPECT_EQ(none.acc, zero);
}

TEST(BoundMerge, FarApartAndHugeErrorsStayNumbers) {
  attn_contract c = contract_of(ATTN_ALG_MERGE, ATTN_FP32, ATTN_FP32, ATTN_FP32);
  const std::vector<double> p{1, -2}, q{5, 7};
  StateBound exact, vague;
  exact.acc = vague.acc = {0, 0};
  vague.m = 1e4;
  for (const std::int32_t merge : {ATTN_MERGE_RENORMALISED, ATTN_MERGE_DIVISION_FREE}) {
    c.split_merge = merge;
    const StateBound far = merge_bound(c, {StateKind::olse, 3e38, 0, p, exact}, {StateKind::olse, -3e38, 0, q, exact});
    EXPECT_FALSE(std::isnan(far.m));
    for (const double e : far.acc) EXPECT_FALSE(std::isnan(e));
    // Weights that may be anything: the hull of both sides, never less.
    const StateBound loose = merge_bound(c, {StateKind::olse, 1, 0, p, vague}, {StateKind::olse, 2, 0, q, exact});
    EXPECT_TRUE(loose.ill_conditioned);
    EXPECT_GE(loose.acc[0], 4 * std::exp(-1) / (1 + std::exp(-1)));
  }
}

}  // namespace
}  // namespace attest::bound_test
