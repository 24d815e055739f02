#include "reports/tool/worker_pool.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

WorkerPool::WorkerPool(int workers, IsolationOptions limits, Serve serve)
    : limits_(limits), serve_(std::move(serve)), slots_(static_cast<std::size_t>(std::max(workers, 1))) {}

// Gives work to those that have none. True if somebody is at work.
bool WorkerPool::fill(const Callbacks& callbacks) {
  bool busy = false, more = !callbacks.abandon();
  for (Slot& slot : slots_) {
    if (more && !(slot.worker && slot.worker->busy())) {
      if (std::optional<Job> job = callbacks.next()) {
        if (!slot.worker) slot.worker = std::make_unique<Worker>(serve_, limits_.memory);
        slot.job = job->id;
        slot.worker->ask(job->request, job->seconds);
      } else {
        more = false;
      }
    }
    busy = busy || (slot.worker && slot.worker->busy());
  }
  return busy;
}

void WorkerPool::wait(double most) {
  std::vector<pollfd> lines;
  lines.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    lines.push_back({slot.worker ? slot.worker->line() : -1, POLLIN, 0});
    if (!slot.worker) continue;
    if (slot.worker->busy()) most = std::min(most, slot.worker->seconds_left());
    if (slot.worker->line() < 0) most = std::min(most, 0.001);  // it is about to end
  }
  const int heard = poll(lines.data(), lines.size(), static_cast<int>(std::max(most, 0.0) * 1000) + 1);
  // When time has passed rather than something been heard, everybody is looked at.
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].ready = heard <= 0 || lines[i].revents != 0;
}

void WorkerPool::collect(Slot& slot, const Callbacks& callbacks) {
  Worker& worker = *slot.worker;
  bool ended = worker.progress();
  if (!ended && worker.busy() && worker.seconds_left() <= 0) worker.give_up(), ended = true;
  if (ended) callbacks.done(slot.job, worker.reply());
  if (!worker.gone()) return;
  if (!worker.ended_after().empty()) callbacks.ended_idle(slot.job, worker.ended_after());
  slot.worker.reset();
}

void WorkerPool::run(const Callbacks& callbacks) {
  Clock::time_point shown = Clock::now(), stopped = {};
  while (fill(callbacks)) {
    if (seconds_since(shown) >= 0.2) callbacks.idle(), shown = Clock::now();
    wait(0.2);
    for (Slot& slot : slots_)
      if (slot.worker && (slot.ready || slot.worker->seconds_left() <= 0)) collect(slot, callbacks);
    if (!callbacks.abandon()) continue;
    if (stopped == Clock::time_point()) stopped = Clock::now();
    if (seconds_since(stopped) < patience) continue;
    for (Slot& slot : slots_)
      if (slot.worker && slot.worker->busy()) slot.worker.reset();
  }
}

}  // namespace attest
