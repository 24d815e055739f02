// Classification of a row, then dispatch to a tier. The table of classes is in TRUTH.md.
#include "oracle/truth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/softmax_tier.h"
#include "oracle/value_class.h"

namespace attest {
namespace {

// Class of q.k by IEEE rules on the exact sum: 0 stands for any finite value (which never overflows here).
double score_class(const double* q, const double* k, std::int64_t d) {
  double c = 0;
  for (std::int64_t i = 0; i < d; ++i)
    if (!std::isfinite(q[i]) || !std::isfinite(k[i])) c += q[i] * k[i];
  return c;
}

}  // namespace

void classify(std::span<const double* const> v, std::span<const double* const> blocked, std::int64_t first,
              std::span<TruthElement> out) {
  const auto width = static_cast<std::int64_t>(out.size());
  bool finite = true;
  for (const double* x : v) finite = finite && (width == 0 || all_finite(x + first, width));
  for (const double* x : blocked) finite = finite && (width == 0 || all_finite(x + first, width));
  for (std::int64_t e = 0; e < width; ++e) {
    double c = 0;  // IEEE addition of the non-finite values gives the class
    if (!finite) {
      for (const double* x : v)
        if (!std::isfinite(x[first + e])) c += x[first + e];
      for (const double* x : blocked) c += 0 * x[first + e];
    }
    out[e] = {};
    if (std::isnan(c))
      out[e].kind = TruthKind::nan;
    else if (c != 0)
      out[e].kind = c > 0 ? TruthKind::pos_inf : TruthKind::neg_inf;
  }
}

std::unique_ptr<SoftmaxTier> make_tier(const Row& row, Tier tier) {
  if (tier == Tier::fp64) return make_fp64_tier(row);
  if (tier == Tier::double_double) return make_double_double_tier(row);
  return make_exact_tier(row, tier);
}

std::unique_ptr<SoftmaxTier> make_tier(std::span<const double> scores, Tier tier) {
  if (tier == Tier::fp64) return make_fp64_tier(scores);
  if (tier == Tier::double_double) return make_double_double_tier(scores);
  return make_exact_tier(scores, tier);
}

RowOracle::RowOracle(const Row& row) : row_(row) {
  bool finite = all_finite(row.q, row.d_qk);
  for (const double* k : row.k) finite = finite && all_finite(k, row.d_qk);
  if (!finite) {
    row_.key.clear(), row_.k.clear(), row_.v.clear();
    for (std::int64_t j = 0; j < row.size(); ++j) {
      const double c = score_class(row.q, row.k[j], row.d_qk);
      if (std::isnan(c) || c > 0) kind_ = TruthKind::nan;  // exp(inf - inf)
      if (c == 0) {
        row_.key.push_back(row.key[j]);
        row_.k.push_back(row.k[j]);
        row_.v.push_back(row.v[j]);
      } else {
        v_blocked_.push_back(row.v[j]);
      }
    }
  }
  if (kind_ == TruthKind::finite && row_.key.empty()) kind_ = TruthKind::zero;
}

RowOracle::~RowOracle() = default;
RowOracle::RowOracle(RowOracle&&) noexcept = default;
RowOracle& RowOracle::operator=(RowOracle&&) noexcept = default;

const SoftmaxTier& RowOracle::at(Tier tier) {
  auto& t = tiers_[static_cast<std::size_t>(tier)];
  if (!t) t = make_tier(row_, tier);
  return *t;
}

void RowOracle::columns(std::int64_t first, std::span<TruthElement> out, Tier tier) {
  if (kind_ == TruthKind::nan) return std::fill(out.begin(), out.end(), TruthElement{TruthKind::nan});
  classify(row_.v, v_blocked_, first, out);
  if (kind_ == TruthKind::zero) {
    for (TruthElement& e : out)
      if (e.kind == TruthKind::finite) e.kind = TruthKind::zero;
    return;
  }
  for_finite_runs(out,
                  [&](std::int64_t begin, std::span<TruthElement> run) { at(tier).means(row_.v, first + begin, run); });
}

TruthElement RowOracle::o(std::int64_t e, Tier tier) {
  TruthElement result;
  columns(e, {&result, 1}, tier);
  return result;
}

TruthElement RowOracle::lse(Tier tier) {
  if (kind_ == TruthKind::nan) return {TruthKind::nan};
  if (kind_ == TruthKind::zero) return {TruthKind::neg_inf};
  return at(tier).log_sum();
}

RowTruth RowOracle::all(Tier tier) {
  RowTruth t;
  t.tier = tier;
  t.o.resize(row_.d_v);
  columns(0, t.o, tier);
  t.lse = lse(tier);
  return t;
}

RowTruth row_truth(const Row& row, const RowStats& /*stats*/, Tier tier) { return RowOracle(row).all(tier); }

TruthElement element_truth(const Row& row, const RowStats& /*stats*/, std::int64_t e, Tier tier) {
  RowOracle oracle(row);
  return e < 0 ? oracle.lse(tier) : oracle.o(e, tier);
}

}  // namespace attest
