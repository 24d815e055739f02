#include "impl/cpu/parallel.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace attn {

void parallel_for(Index threads, Index tasks, const std::function<void(Index task, Index worker)>& task) {
  const Index workers = smaller(threads, tasks);
  if (workers <= 1) {
    for (Index t = 0; t < tasks; ++t) task(t, 0);
    return;
  }
  std::atomic<Index> next{0};
  const auto work = [&](Index worker) {
    for (Index t = next.fetch_add(1); t < tasks; t = next.fetch_add(1)) task(t, worker);
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(workers - 1));
  try {
    for (Index w = 1; w < workers; ++w) others.emplace_back(work, w);
  } catch (const std::system_error&) {
    // No more threads to be had.
  }
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace attn
