// Kernels in worker processes: one that crashes, hangs or runs out of memory is a failure with its case, and the gate
// goes on.
#include <algorithm>
#include <optional>

#include "oracle/buffer.h"
#include "properties/check.h"
#include "properties/execute.h"
#include "reports/tool/counting.h"
#include "reports/tool/record.h"
#include "reports/tool/shrinker.h"
#include "reports/tool/text.h"
#include "reports/tool/worker_pool.h"

namespace attest {
namespace {

// Both placements take turns over generated cases, and over the corpus from pair to pair.
Placement placement_of(const Unit& unit) {
  const std::int64_t turn = unit.index >= 0 ? unit.index : unit.index + static_cast<std::int64_t>(unit.pair);
  return turn % 2 == 0 ? Placement::page_end : Placement::page_begin;
}

// ---- in the worker ------------------------------------------------------------------------------------------------

CheckResult check_here(const Case& c, const Pair& pair, const LawContext& context, Placement placement) {
  const Kernel& kernel = pair.kernel->kernel;
  grant_memory(8 * problem_bytes(c, formats_for(kernel)));  // laws hold several problems at once
  const PlacementScope scope(placement);
  return check_case(c, kernel, *pair.law, context);
}

std::string unit_request(std::size_t order) {
  RecordWriter out;
  out << std::uint64_t{0} << std::uint64_t{order};
  return out.take();
}

std::string case_request(std::size_t pair, Placement placement, std::uint64_t context_seed, const Case& c) {
  RecordWriter out;
  out << std::uint64_t{1} << std::uint64_t{pair} << static_cast<std::uint64_t>(placement) << context_seed << to_text(c);
  return out.take();
}

std::string answer(const Arrival& a) {
  RecordWriter out;
  out << a.inapplicable << a.hash << a.result;
  return out.take();
}

std::string serve(const Judging& judging, const std::string& request, const Announce& announce) {
  const Plan& plan = judging.plan;
  RecordReader in(request);
  Arrival a;
  if (in.number() == 1) {
    const Pair& pair = plan.pairs.at(in.number());
    const auto placement = static_cast<Placement>(in.number());
    const std::uint64_t seed = in.number();
    const Case c = parse_case(in.text(), "a shrunk case");
    LawContext context = context_for(c, plan.lambda, plan.launches);
    context.seed = seed;
    a.result = check_here(c, pair, context, placement);
    return answer(a);
  }
  const Unit unit = plan.unit(in.number());
  const Pair& pair = plan.pairs[unit.pair];
  const Kernel& kernel = pair.kernel->kernel;
  const CorpusCase* from = judging.replayed(unit);
  const Case c = from ? from->data : generated_case(kernel, *pair.law, judging.options.seed, unit.index);
  a.inapplicable = pair.law->why_not(c, kernel);
  if (!a.inapplicable.empty()) return answer(a);
  if (!from) {
    a.hash = case_hash(c);
    announce(to_text(c));
  }
  a.result = check_here(c, pair, context_for(c, plan.lambda, plan.launches), placement_of(unit));
  return answer(a);
}

// ---- in the parent ------------------------------------------------------------------------------------------------

Arrival arrival(const Reply& reply) {
  Arrival a;
  a.result = result_of(reply, [&](RecordReader& in) {
    a.inapplicable = in.text();
    a.hash = in.text();
  });
  if (reply.hung)
    a.ending = CheckEnding::hung;
  else if (!reply.answered)
    a.ending = CheckEnding::crashed;
  if (a.result.outcome == Outcome::fail) a.inapplicable.clear(), a.case_text = reply.announced;
  return a;
}

// One failure on its way to a smaller case. What is tried counts as the same failure only if it ends in the same way.
struct Shrinking {
  std::size_t pair;
  CheckEnding ending;
  Placement placement;
  std::uint64_t seed;  // of the law's own choices
  Shrinker shrinker;
  bool confirming = false, over = false, asked = false;
};

// A hang is tried for a part of the limit only; the case that comes of it must then hang for all of it.
double seconds_of_a_try(CheckEnding ending, double limit) {
  return ending == CheckEnding::hung ? std::clamp(limit / 10, std::min(limit, 0.25), 2.0) : limit;
}
constexpr int kHangChecks = 12;

std::optional<Job> next_try(std::vector<Shrinking>& all, double limit) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    Shrinking& s = all[i];
    if (s.asked || s.over) continue;
    if (const Case* c = s.confirming ? nullptr : s.shrinker.next()) {
      s.asked = true;
      return Job{i, case_request(s.pair, s.placement, s.seed, *c), seconds_of_a_try(s.ending, limit)};
    }
    // A law that draws its own choices draws others for another case, so the shrunk case counts only if `check`, which
    // asks afresh, fails on it too.
    s.confirming = s.asked = s.shrinker.smaller();
    s.over = !s.confirming;
    if (s.over) continue;
    const Case& best = s.shrinker.best();
    return Job{i, case_request(s.pair, s.placement, context_for(best, 0).seed, best), limit};
  }
  return std::nullopt;
}

void take_try(Shrinking& s, const Arrival& a, std::optional<Failure>& failure) {
  s.asked = false;
  const bool same = a.result.outcome == Outcome::fail && a.ending == s.ending;
  if (!s.confirming) return s.shrinker.tell(same);
  s.over = true;
  if (!same) return;
  failure->data = s.shrinker.best();
  failure->result = a.result;
}

void keep_failures(Judging& judging, const Counting& counting, WorkerPool& pool, WorkerPool::Callbacks callbacks) {
  const std::vector<std::size_t> failed = judging.failed_pairs();
  std::vector<Shrinking> all;
  for (const std::size_t pair : failed) {
    const Failure& failure = *judging.result.tallies[pair].failure;
    if (failure.replayed || !failure.unsaved.empty()) continue;
    const CheckEnding ending = counting.ending_of_failure(pair);
    const int checks = ending == CheckEnding::hung ? kHangChecks : Judging::shrinking_checks(failed.size());
    all.push_back({pair, ending, placement_of(judging.plan.unit(failure.order)), context_for(failure.data, 0).seed,
                   Shrinker(failure.data, checks)});
  }
  callbacks.next = [&] {
    return judging.interrupted() ? std::nullopt : next_try(all, judging.options.isolation.seconds);
  };
  callbacks.done = [&](std::size_t id, const Reply& reply) {
    take_try(all[id], arrival(reply), judging.result.tallies[all[id].pair].failure);
  };
  callbacks.ended_idle = [](std::size_t, const std::string&) {};  // a failure of this kernel has been kept
  callbacks.idle = [&] { judging.show_shrinking(failed.size()); };
  pool.run(callbacks);
  judging.clear_progress();
  for (const std::size_t pair : failed) {
    // A plugin is isolated without being asked, so only what ends a worker needs the limits to be seen again.
    const bool ended = counting.ending_of_failure(pair) != CheckEnding::answered;
    judging.save(pair, ended ? isolation_flags(judging.options.isolation) : "");
  }
}

}  // namespace

void check_in_workers(Judging& judging) {
  const auto serve_here = [&](const std::string& request, const Announce& announce) {
    return serve(judging, request, announce);
  };
  WorkerPool pool(judging.jobs, judging.options.isolation, serve_here);
  Counting counting(judging);
  WorkerPool::Callbacks callbacks;
  callbacks.next = [&]() -> std::optional<Job> {
    if (judging.out_of_time()) return std::nullopt;
    const std::optional<std::size_t> order = counting.next();
    if (!order) return std::nullopt;
    return Job{*order, unit_request(*order), judging.options.isolation.seconds};
  };
  callbacks.done = [&](std::size_t order, const Reply& reply) { counting.add(order, arrival(reply)); };
  callbacks.ended_idle = [&](std::size_t order, const std::string& how) {
    const Pair& pair = judging.plan.pairs[judging.plan.unit(order).pair];
    judging.result.strays.push_back(pair.kernel->kernel.name + ": after a check of " + std::string(pair.law->name) +
                                    " had ended, the kernel " + how);
  };
  callbacks.idle = [&] { judging.show_progress(); };
  callbacks.abandon = [&] { return judging.interrupted(); };
  pool.run(callbacks);
  counting.count_all();
  judging.note_end();
  keep_failures(judging, counting, pool, callbacks);
}

}  // namespace attest
