// Worker processes that answer requests side by side; one that a kernel has ended is replaced.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reports/tool/worker.h"

namespace attest {

struct Job {
  std::size_t id = 0;
  std::string request;
  double seconds = 0;  // it is given up when it has not been answered by then
};

class WorkerPool {
 public:
  // `serve` runs in the workers, which are forked when there is something for them to do: the caller must have no
  // threads, now and later.
  WorkerPool(int workers, IsolationOptions limits, Serve serve);

  struct Callbacks {
    std::function<std::optional<Job>()> next;          // nothing: not now; again after the next reply
    std::function<void(std::size_t id, Reply&)> done;  // replies come in any order
    // A worker ended when it had answered (a thread that a kernel left behind): its last job, and how it ended.
    std::function<void(std::size_t id, const std::string&)> ended_idle;
    std::function<void()> idle = [] {};                    // five times a second
    std::function<bool()> abandon = [] { return false; };  // what runs gets `patience`, and is then dropped unheard
  };
  // Until there is no job and no reply left to come.
  void run(const Callbacks& callbacks);

  static constexpr double patience = 2;  // seconds

 private:
  struct Slot {
    std::unique_ptr<Worker> worker;
    std::size_t job = 0;
    bool ready = false;  // something has come
  };
  bool fill(const Callbacks& callbacks);
  void wait(double most);
  void collect(Slot& slot, const Callbacks& callbacks);

  IsolationOptions limits_;
  Serve serve_;
  std::vector<Slot> slots_;
};

}  // namespace attest
