// One worker process: it answers requests until its parent closes the line, or until a kernel ends it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "reports/tool/isolation.h"
#include "reports/tool/last_words.h"

namespace attest {

// Tells the parent what is about to run (a case as text), so that it is known if the answer never comes.
using Announce = std::function<void(const std::string&)>;
// Answers a request; runs in the worker.
using Serve = std::function<std::string(const std::string& request, const Announce& announce)>;

// In the worker, while it answers: its limit on memory is that much higher, until the next request. What the harness
// itself needs for a large case is not the kernel's.
void grant_memory(double bytes);

// How a request ended.
struct Reply {
  bool answered = false;
  std::string answer;
  std::string announced;  // the last announcement
  std::string ending;     // if not answered: "crashed with ...", "did not return within ..."
  bool hung = false;      // not answered within the time
};

class Worker {
 public:
  // Forks. The caller must have no threads. Raises UsageError if there is no process to be had. `memory`: GiB that one
  // request may add; 0: no limit.
  Worker(const Serve& serve, double memory);
  // Kills it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Becomes readable when there is something to take; -1 once the other end is closed.
  int line() const { return line_closed_ ? -1 : line_; }
  // Sends a request. It is overdue after so many seconds.
  void ask(const std::string& request, double seconds);
  // Takes what has arrived. True if the request has ended; reply() then says how.
  bool progress();
  // Kills it because it has not answered in time; reply() then says so.
  void give_up();
  double seconds_left() const;

  bool busy() const { return busy_; }
  bool gone() const { return child_ == 0; }
  Reply& reply() { return reply_; }
  // How it ended while it had nothing to do: a thread that a kernel left behind. Empty if it did not.
  const std::string& ended_after() const { return ended_after_; }

 private:
  bool take_messages();  // true if the answer is among them

  LastWords last_words_;
  pid_t child_ = 0;
  int line_ = -1;
  bool busy_ = false, line_closed_ = false;
  double limit_ = 0, deadline_ = 0;
  std::string received_, ended_after_;
  Reply reply_;
};

}  // namespace attest
