// The exact tiers: the definition of attention, dense, in two passes, on rigorous intervals (MPFI). Every operation
// rounds outwards, so each interval holds the exact value of what is written; nothing else is needed.
#include <algorithm>
#include <boost/multiprecision/mpfi.hpp>
#include <limits>
#include <vector>

#include "oracle/softmax_tier.h"

namespace attest {
namespace {

namespace mp = boost::multiprecision;

// The precision is part of the type: no thread's default precision plays a part, and none is changed.
template <unsigned Digits10>
using Interval = mp::number<mp::mpfi_float_backend<Digits10>, mp::et_off>;
using Interval128 = Interval<38>;
using Interval256 = Interval<77>;
using Interval512 = Interval<154>;

// The midpoint as hi + lo, and the largest distance from it to either end, rounded up. An unbounded or meaningless
// interval, or one outside double's range, gives radius = +inf.
template <class Real>
TruthElement enclosure(const Real& x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto* ends = x.backend().data();
  mpfr_srcptr left = &ends->left, right = &ends->right;
  if (!mpfr_number_p(left) || !mpfr_number_p(right)) return {TruthKind::finite, 0, 0, infinity};
  mpfr_t t, distance;
  mpfr_inits2(mpfr_get_prec(left) + 64, t, distance, static_cast<mpfr_ptr>(nullptr));
  mpfi_get_fr(t, ends);
  TruthElement e;
  e.hi = mpfr_get_d(t, MPFR_RNDN);
  mpfr_sub_d(t, t, e.hi, MPFR_RNDN);
  e.lo = mpfr_get_d(t, MPFR_RNDN);
  mpfr_sub_d(t, right, e.hi, MPFR_RNDU);
  mpfr_sub_d(distance, t, e.lo, MPFR_RNDU);
  e.radius = std::max(0.0, mpfr_get_d(distance, MPFR_RNDU));
  mpfr_d_sub(t, e.hi, left, MPFR_RNDU);
  mpfr_add_d(distance, t, e.lo, MPFR_RNDU);
  e.radius = std::max(e.radius, mpfr_get_d(distance, MPFR_RNDU));
  mpfr_clears(t, distance, static_cast<mpfr_ptr>(nullptr));
  if (!(std::abs(e.hi) < infinity) || !(e.radius < infinity)) return {TruthKind::finite, 0, 0, infinity};
  return e;
}

template <class Real>
class ExactTier final : public SoftmaxTier {
 public:
  explicit ExactTier(const Row& row) {
    std::vector<Real> score;
    for (const double* k : row.k) {
      Real x = 0;
      for (std::int64_t i = 0; i < row.d_qk; ++i) x += Real(row.q[i]) * Real(k[i]);
      score.push_back(Real(row.scale) * x);
    }
    weigh(score);
  }

  explicit ExactTier(std::span<const double> scores) { weigh({scores.begin(), scores.end()}); }

  void means(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    for (std::size_t e = 0; e < out.size(); ++e) {
      const auto column = first + static_cast<std::int64_t>(e);
      if (v.size() == 1)
        out[e] = {TruthKind::finite, v[0][column], 0, 0};
      else
        out[e] = enclosure<Real>(weighted_sum(v, column) / total_);
    }
  }

  void sums(std::span<const double* const> v, std::int64_t first, std::span<TruthElement> out) const override {
    for (std::size_t e = 0; e < out.size(); ++e)
      out[e] = enclosure<Real>(weighted_sum(v, first + static_cast<std::int64_t>(e)));
  }

  TruthElement log_sum() const override { return enclosure<Real>(shift_ + log(total_)); }

 private:
  // Any shift gives the same quotients; that of a largest score keeps exp in range. Its own weight is exactly 1.
  void weigh(const std::vector<Real>& score) {
    const auto largest = std::max_element(score.begin(), score.end(), [](const Real& a, const Real& b) {
      return mpfr_less_p(&a.backend().data()->right, &b.backend().data()->right) != 0;
    });
    shift_ = *largest;
    total_ = 0;
    for (auto s = score.begin(); s != score.end(); ++s) {
      w_.push_back(s == largest ? Real(1) : Real(exp(*s - shift_)));
      total_ += w_.back();
    }
  }

  Real weighted_sum(std::span<const double* const> v, std::int64_t column) const {
    Real sum = 0;
    for (std::size_t j = 0; j < v.size(); ++j) sum += w_[j] * Real(v[j][column]);
    return sum;
  }

  std::vector<Real> w_;
  Real shift_, total_;
};

// MPFR caches constants in each thread and leaves it to the thread to free them.
struct ThreadCaches {
  ThreadCaches() = default;
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
  ~ThreadCaches() { mpfr_free_cache(); }
};

template <class Source>
std::unique_ptr<SoftmaxTier> make(const Source& source, Tier tier) {
  [[maybe_unused]] static thread_local ThreadCaches caches;
  switch (tier) {
    case Tier::exact128:
      return std::make_unique<ExactTier<Interval128>>(source);
    case Tier::exact256:
      return std::make_unique<ExactTier<Interval256>>(source);
    default:
      return std::make_unique<ExactTier<Interval512>>(source);
  }
}

}  // namespace

std::unique_ptr<SoftmaxTier> make_exact_tier(const Row& row, Tier tier) { return make(row, tier); }
std::unique_ptr<SoftmaxTier> make_exact_tier(std::span<const double> scores, Tier tier) { return make(scores, tier); }

}  // namespace attest
