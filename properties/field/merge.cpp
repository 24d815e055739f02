#include "properties/field/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "oracle/format.h"
#include "oracle/philox.h"
#include "oracle/problem.h"

namespace attest::field {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Two parts, part-major: lse [2, rows], o [2, rows, d_v].
struct Pair {
  std::vector<double> lse, o;
};

Pair draw(const MergeTest& t, std::uint64_t seed) {
  RandomStream scores(seed, 1), values(seed, 2), empties(seed, 3);
  Pair p;
  for (std::int64_t r = 0; r < 2 * t.rows; ++r) p.lse.push_back(round_to(DType::fp32, scores.normal(r)));
  for (std::int64_t i = 0; i < 2 * t.rows * t.d_v; ++i) p.o.push_back(round_to(t.partials, values.normal(i)));
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const double u = empties.uniform(static_cast<std::uint64_t>(r));
    if (u < t.empty_a) {
      p.lse[static_cast<std::size_t>(r)] = -kInf;
    } else if (u < t.empty_a + t.empty_b) {
      p.lse[static_cast<std::size_t>(t.rows + r)] = -kInf;
    }
  }
  return p;
}

Outputs merged(const MergeTest& t, const Pair& p) {
  Outputs out;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const double a = p.lse[static_cast<std::size_t>(r)], b = p.lse[static_cast<std::size_t>(t.rows + r)];
    const double top = std::max(a, b), wa = std::exp(a - top), wb = std::exp(b - top);
    out.lse.push_back(round_to(DType::fp32, top + std::log(wa + wb)));
    for (std::int64_t e = 0; e < t.d_v; ++e) {
      const double oa = p.o[static_cast<std::size_t>(r * t.d_v + e)];
      const double ob = p.o[static_cast<std::size_t>((t.rows + r) * t.d_v + e)];
      out.o.push_back(round_to(DType::fp32, (wa * oa + wb * ob) / (wa + wb)));
    }
  }
  return out;
}

Case as_case(const MergeTest& t, const Pair& p, bool normalised) {
  Case c;
  c.op = Op::merge;
  c.state = normalised ? StateKind::olse : StateKind::mla;
  c.shape.tq = t.rows, c.shape.d_v = t.d_v, c.shape.parts = 2;
  auto& tensors = c.values.tensors;
  if (normalised) {
    tensors["lse"].literal = p.lse, tensors["o"].literal = p.o;
    return c;
  }
  tensors["m"].literal = p.lse, tensors["acc"].literal = p.o;
  for (std::size_t r = 0; r < p.lse.size(); ++r) {
    const bool empty = p.lse[r] == -kInf;
    tensors["l"].literal.push_back(empty ? 0 : 1);
    for (std::int64_t e = 0; empty && e < t.d_v; ++e)
      tensors["acc"].literal[r * static_cast<std::size_t>(t.d_v) + static_cast<std::size_t>(e)] = 0;
  }
  return c;
}

// The kernel's outputs as the project reads them; nullopt if it refuses the case.
std::optional<Outputs> run(const MergeTest& t, const Case& c, const Kernel& kernel, std::vector<double>& raw) {
  Problem problem(c, Formats{});
  char why[256] = "";
  const attn_problem& p = problem.abi();
  if (kernel.abi->supports(&p, why, sizeof why) != ATTN_OK) return std::nullopt;
  if (kernel.abi->run(&p, nullptr, 0, why, sizeof why) != ATTN_OK) return std::nullopt;
  Outputs out{problem.output("acc"), problem.output("m")};
  raw = out.o;
  raw.insert(raw.end(), out.lse.begin(), out.lse.end());
  if (c.state == StateKind::mla) {
    const std::vector<double> l = problem.output("l");
    raw.insert(raw.end(), l.begin(), l.end());
    for (std::size_t i = 0; i < out.o.size(); ++i) out.o[i] /= l[i / static_cast<std::size_t>(t.d_v)];
    for (std::size_t r = 0; r < l.size(); ++r) out.lse[r] += std::log(l[r]);
  }
  for (double& x : out.o) x = round_to(t.out, x);
  for (double& x : out.lse) x = round_to(DType::fp32, x);
  return out;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

MergeResult run_merge_test(const MergeTest& t, const Kernel& kernel, const Kernel* correct, std::uint64_t seed) {
  const Pair pair = draw(t, seed);
  MergeResult result;
  for (const bool normalised : {true, false}) {
    const Case c = as_case(t, pair, normalised);
    std::vector<double> raw, right;
    const std::optional<Outputs> got = run(t, c, kernel, raw);
    if (!got) continue;
    result.ran = true;
    result.touched = !correct || !run(t, c, *correct, right) || !same(raw, right);
    Reference reference;
    reference.want = merged(t, pair);
    for (double x : reference.want.o) reference.unfused.push_back(round_to(t.out, x));
    if (!t.rule({*got, reference, t.out, 0})) result.failure = "the merged results are not close";
    break;
  }
  return result;
}

}  // namespace attest::field
