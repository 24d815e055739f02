#include "reports/tool/counting.h"

#include <utility>

#include "reports/tool/text.h"

namespace attest {
namespace {

// A kernel that ends its worker costs a process each time, and one that hangs costs the whole time limit. After so many
// the rest of the pair, or of the kernel, is not run; it fails anyway.
constexpr int kMostCrashes = 3, kMostHangs = 1, kMostHangsOfKernel = 3;

}  // namespace

std::optional<std::size_t> Counting::next() {
  while (asked_ < judging_.plan.size() && is_stopped(judging_.plan.unit(asked_).pair)) ++asked_;
  if (asked_ < judging_.plan.size()) return asked_++;
  count_arrived();
  return std::nullopt;
}

void Counting::add(std::size_t order, Arrival a) {
  if (order >= counted_) arrived_[order] = std::move(a);
  count_arrived();
}

void Counting::count_all() {
  for (const auto& [order, a] : arrived_) {
    ++judging_.result.done;
    count(order, a);
  }
  arrived_.clear();
}

void Counting::count_arrived() {
  for (; counted_ < asked_; ++counted_, ++judging_.result.done) {
    const std::size_t pair = judging_.plan.unit(counted_).pair;
    if (is_stopped(pair)) {  // whether it was asked for or not
      ++judging_.result.tallies[pair].skipped;
      arrived_.erase(counted_);
      continue;
    }
    const auto at = arrived_.find(counted_);
    if (at == arrived_.end()) return;
    count(at->first, at->second);
    arrived_.erase(at);
  }
}

void Counting::count(std::size_t order, const Arrival& a) {
  const Unit unit = judging_.plan.unit(order);
  PairTally& tally = judging_.result.tallies[unit.pair];
  if (!a.inapplicable.empty()) return tally.add_inapplicable(order, a.inapplicable);
  const bool fails = a.result.outcome == Outcome::fail;
  const CorpusCase* from = judging_.replayed(unit);
  const bool lost = !from && fails && a.case_text.empty();
  const Case c = from ? from->data : fails && !lost ? parse_case(a.case_text, "a generated case") : Case();
  // A worker that ended had no time to name its case.
  const std::string hash = fails && !from && !lost ? case_hash(c) : a.hash;
  tally.add(order, from != nullptr, judging_.case_name(unit, hash), c, a.result);
  if (fails && tally.failure->order == order) {
    pairs_[unit.pair].failure = a.ending;
    if (lost) tally.failure->unsaved = "it was still being made, with the kernel's supports()";
  }
  if (a.ending != CheckEnding::answered) stop_where_due(unit.pair, a.ending);
}

void Counting::stop_where_due(std::size_t pair, CheckEnding ending) {
  PairState& state = pairs_[pair];
  std::string& stopped = judging_.result.tallies[pair].stopped;
  if (ending == CheckEnding::crashed) {
    if (++state.crashes == kMostCrashes) stopped = text("after %d crashes", kMostCrashes);
    return;
  }
  if (++state.hangs == kMostHangs) stopped = "after a check that did not return";
  const LoadedKernel* kernel = judging_.plan.pairs[pair].kernel;
  if (++hangs_[kernel] != kMostHangsOfKernel) return;
  for (std::size_t i = 0; i < pairs_.size(); ++i)
    if (judging_.plan.pairs[i].kernel == kernel && !is_stopped(i))
      judging_.result.tallies[i].stopped =
          text("after %d checks of its kernel that did not return", kMostHangsOfKernel);
}

}  // namespace attest
