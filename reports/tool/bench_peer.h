// The peer process: Python with PyTorch, beside which our kernels are timed. It is asked by one JSON object a line and
// answers by one; reports/tool/peers/torch_peer.py is the other end, compiled into this tool.
//
// Two processes, so that either side has its own runtime, allocator and libraries and the tool needs none of them; the
// tensors are the same, opened by the peer through a CUDA memory handle.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace attest {

// The process ended, was stopped, or did not answer in time.
struct BenchPeerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class BenchPeer {
 public:
  // Starts `python` and waits for its hello; nullptr with the reason in why. `stop` is asked while waiting.
  static std::unique_ptr<BenchPeer> start(const std::string& python, const std::function<bool()>& stop,
                                          std::string& why);
  ~BenchPeer();
  BenchPeer(const BenchPeer&) = delete;
  BenchPeer& operator=(const BenchPeer&) = delete;

  // The answer: {"error": "..."} if the peer could not do it. Raises BenchPeerLost.
  nlohmann::json ask(const nlohmann::json& request);

  // What it said of itself: torch, cuda, cudnn, device, python.
  const nlohmann::json& hello() const { return hello_; }

 private:
  explicit BenchPeer(std::function<bool()> stop) : stop_(std::move(stop)) {}
  std::string read_line(double seconds);
  [[noreturn]] void lose(const std::string& why);

  std::function<bool()> stop_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1, errors_ = -1;
  std::string pending_;
  nlohmann::json hello_;
};

}  // namespace attest
