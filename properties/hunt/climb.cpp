#include <algorithm>
#include <optional>

#include "properties/evaluate.h"
#include "properties/generate.h"
#include "properties/hunt/hunt.h"
#include "properties/hunt/moves.h"
#include "properties/limits.h"

namespace attest {
namespace {

struct Climber {
  Case at;
  HuntScore score;
};

class Hunt {
 public:
  Hunt(const Kernel& kernel, const HuntOptions& options) : kernel_(kernel), options_(options), random_(options.seed) {}

  HuntResult run() {
    out_ = options_.stored ? OutDType::storage : OutDType::accumulator;
    if (kernel_.abi->op == ATTN_OP_FORWARD && !options_.stored && !takes_accumulator(kernel_)) out_ = OutDType::storage;
    result_.stored = out_ == OutDType::storage;
    result_.score.status = Outcome::rejected;
    result_.score.reason = "no case was run";
    for (const Case& c : options_.starts) given(c);
    // An eighth of the runs finds starts (all of them where nothing is climbed). Then fewer and fewer of the best share
    // the rest.
    const std::int64_t starts = options_.climb ? options_.evaluations / 8 : options_.evaluations;
    while (result_.evaluations < starts && !over_) start();
    for (const auto& [most, until] : {std::pair{16, 0.45}, {4, 0.75}, {1, 1.0}}) {
      if (!options_.climb || over_ || pool_.empty()) break;
      std::stable_sort(pool_.begin(), pool_.end(),
                       [](const Climber& a, const Climber& b) { return a.score.ratio > b.score.ratio; });
      pool_.resize(std::min(pool_.size(), static_cast<std::size_t>(most)));
      const auto end = static_cast<std::int64_t>(until * static_cast<double>(options_.evaluations));
      for (std::size_t n = 0; result_.evaluations < end && !over_; n = (n + 1) % pool_.size()) improve(pool_[n]);
    }
    return std::move(result_);
  }

 private:
  // One run of the budget. Nothing for a case that says nothing.
  std::optional<HuntScore> score(const Case& c) {
    if (over_ || result_.evaluations >= options_.evaluations) return std::nullopt;
    if (options_.stop && options_.stop(result_.evaluations, result_.score.ratio)) {
      over_ = result_.truncated = true;
      return std::nullopt;
    }
    ++result_.evaluations;
    HuntScore s;
    try {
      validate(c, "hunt");
      s = hunt_score(kernel_, c);
    } catch (const CaseError&) {
      return std::nullopt;  // a move has left what a problem can be
    }
    result_.lse = std::max(result_.lse, s.lse);
    if (s.status == Outcome::fail) over_ = true;
    if (s.status == Outcome::rejected || s.status == Outcome::not_run) {
      ++result_.rejected;
      if (result_.score.status == Outcome::rejected) result_.score.reason = s.reason;
      return std::nullopt;
    }
    if (s.status == Outcome::fail || result_.score.status == Outcome::rejected || s.ratio > result_.score.ratio) {
      result_.worst = c;
      result_.score = s;
    }
    return s;
  }

  void enter(Case c) {
    if (auto s = score(c)) pool_.push_back({std::move(c), *s});
  }
  void start() { enter(hunting::start_case(kernel_, random_, out_)); }
  void given(Case c) {
    if (c.op == Op::forward) c.out = out_;
    const std::int64_t before = result_.evaluations;
    try {
      enter(hunting::frozen(kernel_, c));
    } catch (const CaseError&) {
      result_.evaluations = before;  // a case of another kernel that this one's formats cannot hold
    }
  }

  void improve(Climber& climber) {
    Case next = climber.at;
    const double what = random_.unit();
    if (next.op != Op::forward || what < 0.85) {
      hunting::move(next, kernel_, random_);
    } else {
      if (what < 0.95) hunting::weight_beside_tie(next, kernel_, climber.score.i, random_);
      align(next, climber.score);
    }
    try {
      next = hunting::frozen(kernel_, next);
    } catch (const CaseError&) {
      ++result_.evaluations;
      return;
    }
    const auto s = score(next);
    if (!s || s->ratio < climber.score.ratio) return;
    climber = {std::move(next), *s};
  }

  void align(Case& c, const HuntScore& s) {
    if (s.i >= c.shape.tq) return;
    ++result_.evaluations;
    try {
      hunting::align_values(c, hunting::weight_errors(kernel_, hunting::weights_case(c), s.i), s.e, random_);
    } catch (const CaseError&) {
    }
  }

  const Kernel& kernel_;
  const HuntOptions& options_;
  Random random_;
  OutDType out_ = OutDType::accumulator;
  HuntResult result_;
  std::vector<Climber> pool_;
  bool over_ = false;
};

}  // namespace

HuntResult hunt(const Kernel& kernel, const HuntOptions& options) { return Hunt(kernel, options).run(); }

}  // namespace attest
