// Kernels on threads of this process: ours, which do not crash, or a plugin in a debugger.
#include <atomic>
#include <condition_variable>
#include <exception>
#include <thread>

#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/judging.h"

namespace attest {
namespace {

// Calls work(i) for i in [0, n) from several threads, in order of start, until it is done or `stop` says so.
// An exception of any of them is raised here.
template <class Work, class Stop, class Idle>
void in_parallel(std::size_t n, int jobs, const Work& work, const Stop& stop, const Idle& idle) {
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::condition_variable ended;
  std::exception_ptr error;
  int running = jobs;
  const auto worker = [&] {
    try {
      while (!stop()) {
        const std::size_t i = next++;
        if (i >= n) break;
        work(i);
      }
    } catch (...) {
      const std::scoped_lock hold(lock);
      if (!error) error = std::current_exception();
      next = n;
    }
    const std::scoped_lock hold(lock);
    --running;
    ended.notify_all();
  };
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(jobs));
  for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
  std::unique_lock hold(lock);
  while (!ended.wait_for(hold, std::chrono::milliseconds(200), [&] { return running == 0; })) {
    hold.unlock();
    idle();
    hold.lock();
  }
  hold.unlock();
  threads.clear();
  if (error) std::rethrow_exception(error);
}

void run_unit(Judging& judging, std::size_t order) {
  const Plan& plan = judging.plan;
  const Unit unit = plan.unit(order);
  const Pair& pair = plan.pairs[unit.pair];
  const Kernel& kernel = pair.kernel->kernel;
  const CorpusCase* from = judging.replayed(unit);
  PairTally& tally = judging.result.tallies[unit.pair];
  const Case c = from ? from->data : generated_case(kernel, *pair.law, judging.options.seed, unit.index);
  if (const std::string why = pair.law->why_not(c, kernel); !why.empty()) {
    const std::scoped_lock hold(judging.lock);
    tally.add_inapplicable(order, why);
    ++judging.result.done;
    return;
  }
  const std::string hash = from ? "" : case_hash(c);
  CheckResult r;
  {
    const CrashNote note(from ? from->path : judging.file_name(pair, hash), from ? "" : to_text(c), kernel.name,
                         std::string(pair.law->name), plugin_flags(judging.options.selection));
    r = check_case(c, kernel, *pair.law, context_for(c, plan.lambda, plan.launches));
  }
  const std::scoped_lock hold(judging.lock);
  tally.add(order, from != nullptr, judging.case_name(unit, hash), c, r);
  ++judging.result.done;
}

// A law that draws its own choices draws others for another case, so the shrunk case counts only if `check`, which
// asks afresh, fails on it too.
void shrink(const Judging& judging, const Pair& pair, Failure& failure, int max_checks) {
  const Kernel& kernel = pair.kernel->kernel;
  const double lambda = judging.plan.lambda;
  const CrashNote note(judging.file_name(pair, case_hash(failure.data)), to_text(failure.data), kernel.name,
                       std::string(pair.law->name), plugin_flags(judging.options.selection));
  const Case small = shrink_failure(failure.data, kernel, *pair.law,
                                    context_for(failure.data, lambda, judging.plan.launches), max_checks);
  const CheckResult again = check_case(small, kernel, *pair.law, context_for(small, lambda, judging.plan.launches));
  if (again.outcome != Outcome::fail) return;
  failure.data = small;
  failure.result = again;
}

}  // namespace

void check_on_threads(Judging& judging) {
  in_parallel(
      judging.plan.size(), judging.jobs, [&](std::size_t i) { run_unit(judging, i); },
      [&] { return judging.out_of_time(); }, [&] { judging.show_progress(); });
  judging.note_end();
  const std::vector<std::size_t> failed = judging.failed_pairs();
  if (failed.empty()) return;
  const int each = Judging::shrinking_checks(failed.size());
  const auto keep = [&](std::size_t i) {
    Failure& failure = *judging.result.tallies[failed[i]].failure;
    if (!failure.replayed && !judging.interrupted()) shrink(judging, judging.plan.pairs[failed[i]], failure, each);
    judging.save(failed[i], "");
  };
  in_parallel(
      failed.size(), judging.jobs, keep, [] { return false; }, [&] { judging.show_shrinking(failed.size()); });
  judging.clear_progress();
}

}  // namespace attest
