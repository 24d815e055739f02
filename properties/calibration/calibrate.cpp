#include "properties/calibration/calibrate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "properties/calibration/biased.h"
#include "properties/check.h"
#include "properties/mutants/mutants.h"
#include "properties/variants/variants.h"

namespace attest::calibration {
namespace {

constexpr std::int64_t kPowerOutputs = 500'000;

std::vector<Kernel> correct_kernels() {
  std::vector<Kernel> all;
  for (const auto& some : {runnable_kernels(), mutants::control_kernels(), variants::variant_kernels()})
    for (const Kernel& k : some)
      if (k.abi->op == ATTN_OP_FORWARD) all.push_back(k);
  return all;
}

// The tasks on so many threads; what the first that failed threw.
void run_all(const std::vector<std::function<void()>>& tasks, int jobs) {
  std::atomic<std::size_t> next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = tasks.size();
      }
      if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r%zu of %zu measurements", ++done, tasks.size());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\n");
  if (failure) std::rethrow_exception(failure);
}

std::vector<OutDType> outputs_of(const Kernel& kernel) {
  if (kernel.abi->contract.in_dtype == kernel.abi->contract.acc_dtype) return {OutDType::accumulator};
  return {OutDType::accumulator, OutDType::storage};
}

Group summarise(const UnbiasedThreshold& t, const std::vector<Aggregates>& all) {
  Group g;
  g.threshold = &t;
  std::vector<double> z;
  for (const Aggregates& a : all) {
    if (a.group != &t || !a.unbound.empty()) continue;
    z.insert(z.end(), a.z.begin(), a.z.end());
    g.outputs += a.outputs;
    ++g.kernels;
    g.most = std::max(g.most, a.most());
  }
  g.tail = fit_tail(std::move(z));
  return g;
}

}  // namespace

Study calibrate(const Options& options) {
  Study s;
  s.options = options;
  const std::vector<Kernel> kernels = correct_kernels();
  const std::vector<Biased> biased = biased_kernels();
  // One output of each: which kernels the laws bind, and so how many share what a group needs.
  for (const Kernel& k : kernels)
    for (const OutDType out : outputs_of(k)) s.aggregates.push_back(measure_aggregates(k, out, options.seed, 1));
  for (const Kernel& k : kernels) s.tiers.push_back(measure_tier(k, options.seed, 1));
  const auto share = [&](const auto& all, const auto& counts) {
    const auto n = std::count_if(all.begin(), all.end(), counts);
    return n > 0 ? (options.outputs + n - 1) / n : 0;
  };

  std::vector<std::function<void()>> tasks;
  std::size_t at = 0;
  for (const Kernel& k : kernels)
    for (const OutDType out : outputs_of(k)) {
      Aggregates& a = s.aggregates[at++];
      if (!a.unbound.empty()) continue;
      const std::int64_t outputs =
          share(s.aggregates, [&](const Aggregates& x) { return x.group == a.group && x.unbound.empty(); });
      tasks.emplace_back([&, out, outputs] { a = measure_aggregates(k, out, options.seed, outputs); });
    }
  const std::int64_t outputs = share(s.tiers, [](const Tier& t) { return t.unbound.empty(); });
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (s.tiers[i].unbound.empty())
      tasks.emplace_back([&, i, outputs] { s.tiers[i] = measure_tier(kernels[i], options.seed, outputs); });
  s.powers.resize(biased.size());
  for (std::size_t i = 0; i < biased.size(); ++i)
    tasks.emplace_back([&, i] {
      const auto measure = [&](OutDType out) {
        return measure_aggregates(biased[i].kernel, out, options.seed, std::min(kPowerOutputs, options.outputs));
      };
      s.powers[i] = {biased[i].bias, measure(OutDType::accumulator), measure(OutDType::storage)};
    });
  run_all(tasks, options.jobs);

  for (const Aggregates& a : s.aggregates) s.spread.add(a.spread);
  for (const UnbiasedThreshold& t : unbiased_thresholds()) s.groups.push_back(summarise(t, s.aggregates));
  for (Group& g : s.groups) {
    g.rule = g.tail;
    for (const Group& x : s.groups)
      if (g.threshold->o_rounded && x.threshold->o_rounded && !x.threshold->p_rounded) g.rule = x.tail;
  }
  return s;
}

}  // namespace attest::calibration
