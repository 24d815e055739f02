// One cell: its tensors, its contenders, each output checked once, then all of them timed in turns.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/bench_problem.h"
#include "reports/tool/bench_run.h"

namespace attest {

// Device memory that the cell takes up, with a copy's source and target beside a scan.
std::size_t bench_block_bytes(const BenchCell& cell, std::size_t l2_bytes);

class BenchTurns {
 public:
  BenchTurns(BenchDevice& device, BenchPeer* peer, const BenchPlan& plan, const BenchWatch& watch,
             const BenchCell& cell, std::byte* block, std::size_t block_bytes, bool shared);

  // Raises BenchPeerLost and BenchDeviceError; what was measured until then is in result().
  void run();
  const BenchCellResult& result() const { return result_; }

 private:
  struct Ours {
    const attn_kernel* kernel;
    std::size_t contender;
    std::vector<attn_problem> problems;  // one for each set
  };

  void fill();
  void find_kernels();
  void find_peers();
  void check_kernel(const Ours& ours);
  void check_peers();
  void compute_reference(const Ours& ours);
  bool may_refer(const attn_kernel& k, const attn_problem& problem) const;
  void take_turns();
  void time_peer(BenchContender& c);

  std::vector<attn_problem> problems(bool to_reference) const;
  BenchCall call(const attn_kernel& kernel, std::vector<attn_problem> problems);
  BenchCall copy_call();
  void compare(BenchContender& c, const std::string& with);
  void judge(BenchContender& c, const std::string& against, const BenchDifference& d, std::int32_t dtype);
  bool stopped() const { return watch_.stop && watch_.stop(); }

  BenchDevice& device_;
  BenchPeer* peer_;
  const BenchPlan& plan_;
  const BenchWatch& watch_;
  std::byte* block_;
  std::size_t block_bytes_;
  bool shared_;
  BenchLayout layout_;
  std::vector<Ours> ours_;
  std::string reference_;  // whose outputs are in the reference's place
  BenchCellResult result_;
};

}  // namespace attest
