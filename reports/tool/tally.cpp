#include "reports/tool/tally.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "reports/tool/text.h"

namespace attest {
namespace {

std::int64_t count(const Counts& c, Outcome o) { return c[static_cast<std::size_t>(o)]; }

PairVerdict judge_pair(const PairTally& t, bool waived) {
  if (count(t.counts, Outcome::fail) > 0) return waived ? PairVerdict::waived : PairVerdict::fail;
  if (count(t.counts, Outcome::pass) > 0) return PairVerdict::pass;
  if (t.checks() == 0) return t.inapplicable > 0 ? PairVerdict::not_applicable : PairVerdict::not_reached;
  return count(t.counts, Outcome::not_run) == t.checks() ? PairVerdict::not_run : PairVerdict::no_pass;
}

// "24 checks: 20 rejected, 4 vacuous"
std::string composition(const PairTally& t) {
  std::string parts;
  for (std::size_t o = 0; o < t.counts.size(); ++o)
    if (t.counts[o] > 0)
      parts += (parts.empty() ? "" : ", ") + std::to_string(t.counts[o]) + " " + key(static_cast<Outcome>(o));
  return std::to_string(t.checks()) + (t.checks() == 1 ? " check" : " checks") + (parts.empty() ? "" : ": " + parts);
}

}  // namespace

std::string key(Outcome o) {
  std::string word(name(o));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

std::string_view name(PairVerdict v) {
  switch (v) {
    case PairVerdict::pass:
      return "pass";
    case PairVerdict::fail:
      return "fail";
    case PairVerdict::waived:
      return "waived";
    case PairVerdict::no_pass:
      return "no_pass";
    case PairVerdict::not_run:
      return "not_run";
    case PairVerdict::not_applicable:
      return "not_applicable";
    case PairVerdict::not_reached:
      return "not_reached";
  }
  return "?";
}

std::int64_t PairTally::checks() const {
  std::int64_t n = 0;
  for (const std::int64_t c : counts) n += c;
  return n;
}

void PairTally::add_absent(const std::string& why) {
  ++counts[static_cast<std::size_t>(Outcome::not_run)];
  reason = why;
}

void PairTally::add_inapplicable(std::size_t order, const std::string& why) {
  ++inapplicable;
  if (order >= inapplicable_order_) return;
  inapplicable_order_ = order;
  inapplicable_reason_ = why;
}

void PairTally::add(std::size_t order, bool replayed, const std::string& case_name, const Case& c,
                    const CheckResult& r) {
  ++counts[static_cast<std::size_t>(r.outcome)];
  if (r.outcome != Outcome::pass && r.outcome != Outcome::fail && order < reason_order_) {
    reason_order_ = order;
    reason = r.reason;
  }
  // Checks arrive in any order: among equals the first of the plan counts, whatever the number of jobs.
  if (r.worst_ratio > worst_ratio || (r.worst_ratio == worst_ratio && (worst_case.empty() || order < worst_order_))) {
    worst_ratio = r.worst_ratio;
    worst_order_ = order;
    worst_case = case_name;
  }
  if (r.outcome == Outcome::fail &&
      (!failure || std::pair(replayed, order) < std::pair(failure->replayed, failure->order)))
    failure = Failure{order, replayed, c, r, "", "", ""};
}

Counts GateResult::counts() const {
  Counts sum{};
  for (const PairTally& t : tallies)
    for (std::size_t o = 0; o < sum.size(); ++o) sum[o] += t.counts[o];
  return sum;
}

std::int64_t GateResult::checks() const {
  std::int64_t n = 0;
  for (const PairTally& t : tallies) n += t.checks();
  return n;
}

void GateResult::conclude(const Plan& plan, const GateOptions& options, const std::vector<Waiver>& ledger) {
  const auto waiver_of = [&](const Pair& p) {
    return std::find_if(ledger.begin(), ledger.end(),
                        [&](const Waiver& w) { return w.kernel == p.kernel->kernel.name && w.law == p.law->name; });
  };
  const std::string now = today();
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const auto w = waiver_of(plan.pairs[i]);
    tallies[i].verdict = judge_pair(tallies[i], w != ledger.end() && w->expires >= now);
    if (tallies[i].verdict == PairVerdict::not_applicable) tallies[i].reason = tallies[i].inapplicable_reason_;
    if (tallies[i].verdict == PairVerdict::not_reached && !tallies[i].stopped.empty())
      tallies[i].reason = "stopped " + tallies[i].stopped;
  }

  waivers.clear();
  for (const Waiver& w : ledger) {
    WaiverState state{w, "not judged", false};
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      if (waiver_of(plan.pairs[i]) == ledger.end() || &*waiver_of(plan.pairs[i]) != &w) continue;
      // A run that was cut short may simply not have come to the failure.
      const bool complete = !truncated && !interrupted;
      state.state = count(tallies[i].counts, Outcome::fail) > 0 ? "used" : complete ? "gone" : "not judged";
    }
    if (w.expires < now) state.state = "expired";
    state.fails_gate = state.state == "expired" || state.state == "gone";
    waivers.push_back(state);
  }

  missing.clear();
  const auto required = [&](const LoadedKernel& k) {
    return k.from_plugin || std::any_of(options.require.begin(), options.require.end(),
                                        [&](const std::string& r) { return requirement_matches(r, k.kernel.name); });
  };
  bool any_pass = false;
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const PairTally& t = tallies[i];
    any_pass = any_pass || count(t.counts, Outcome::pass) > 0;
    const bool lacks = t.verdict == PairVerdict::no_pass || t.verdict == PairVerdict::not_reached ||
                       (t.verdict == PairVerdict::not_run && required(*plan.pairs[i].kernel));
    if (lacks)
      missing.push_back(plan.pairs[i].kernel->kernel.name + " " + std::string(plan.pairs[i].law->name) + ": " +
                        composition(t) + (t.reason.empty() ? "" : " (" + t.reason + ")"));
  }
  for (const std::string& r : options.require) {
    const bool there = std::any_of(plan.kernels.begin(), plan.kernels.end(),
                                   [&](const LoadedKernel& k) { return requirement_matches(r, k.kernel.name); });
    if (!there) missing.push_back("required " + r + ": no selected kernel has that name");
  }
  for (const LoadedKernel& k : plan.kernels) {
    if (!required(k)) continue;
    bool here = false, passed = false;
    for (std::size_t i = 0; i < plan.pairs.size(); ++i)
      if (plan.pairs[i].kernel == &k) here = true, passed = passed || count(tallies[i].counts, Outcome::pass) > 0;
    if (here && !passed) missing.push_back("required " + k.kernel.name + ": not one PASS under any law");
  }
  if (!any_pass && missing.empty() && !nothing_ran()) missing.push_back("not one PASS in the whole run");
}

bool GateResult::failed() const {
  return !strays.empty() || std::any_of(tallies.begin(), tallies.end(), [](const PairTally& t) {
    return t.verdict == PairVerdict::fail;
  }) || std::any_of(waivers.begin(), waivers.end(), [](const WaiverState& w) { return w.fails_gate; });
}

bool GateResult::nothing_ran() const {
  return !tallies.empty() && missing.empty() && std::all_of(tallies.begin(), tallies.end(), [](const PairTally& t) {
    return t.checks() > 0 && count(t.counts, Outcome::not_run) == t.checks();
  });
}

std::string_view GateResult::verdict() const {
  if (interrupted) return "interrupted";
  if (failed()) return "fail";
  if (nothing_ran()) return "not_run";
  return missing.empty() ? "pass" : "incomplete";
}

int GateResult::exit_code() const {
  if (interrupted) return 130;
  if (failed()) return 1;
  return missing.empty() ? 0 : 3;
}

}  // namespace attest
