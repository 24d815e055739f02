// The lines of a benchmark that people read while it runs.
#include <algorithm>

#include "reports/tool/bench_report.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::string without(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// The largest difference of any of our kernels from whatever it was compared with.
std::string differs(const BenchCellResult& cell) {
  double worst = -1;
  for (const BenchContender& c : cell.contenders)
    if (c.role == BenchRole::kernel)
      for (const auto& [with, d] : c.differences) worst = std::max(worst, d.value);
  return worst < 0 ? "" : text(" | differs %.1e", worst);
}

const char* key(BenchTiming t) { return t == BenchTiming::device ? "device" : "call"; }

}  // namespace

std::string bench_line(const BenchCellResult& r, BenchTiming timing) {
  std::string line = text("%-30s ", r.cell.name().c_str());
  if (!r.skipped.empty()) return line + "skipped: " + r.skipped;
  if (const BenchContender* ours = r.fastest(BenchRole::kernel, "", timing))
    line += text("%7.1f %s %s", r.rate(*ours, timing), r.cell.unit(), ours->name.c_str());
  else if (const BenchContender* copy = r.fastest(BenchRole::yardstick, "", timing))
    line += text("%7.1f %s %s", r.rate(*copy, timing), r.cell.unit(), copy->name.c_str());
  else
    line += r.cell.kind == BenchKind::matmul ? "" : "not one of our kernels was timed";
  if (const double share = r.cell.kind == BenchKind::scan ? r.share_of_copy(timing) : 0; share > 0)
    line += text(" | %.1f %% of copy", 100 * share);
  for (const char* peer :
       {flash_peer, cudnn_peer, "torch.efficient", "torch.logsumexp", "torch.copy", "torch.matmul"}) {
    const BenchContender* theirs = r.fastest(BenchRole::peer, peer, timing);
    if (!theirs) continue;
    line += text(" | %s %.1f", without(theirs->name, "torch.").c_str(), r.rate(*theirs, timing));
    if (const double ratio = r.ratio(peer, timing); ratio > 0) line += text(" = %.2fx", ratio);
  }
  line += differs(r);
  for (const BenchContender& c : r.contenders)
    if (c.role != BenchRole::yardstick && (c.status == BenchStatus::wrong || c.status == BenchStatus::failed))
      line += "\n  " + std::string(c.status == BenchStatus::wrong ? "WRONG " : "FAILED ") + c.name + ": " + c.reason;
  return line;
}

std::string bench_summary(const BenchResult& r, const BenchRequirement& required) {
  if (!r.not_run.empty()) return "NOT_RUN bench: " + r.not_run + "\n";
  std::string out;
  if (const double copy = r.copy_rate(); copy > 0) out += text("copy bandwidth %.1f GB/s (read + written)\n", copy);
  for (const char* peer : {flash_peer, cudnn_peer})
    for (const BenchTiming t : {BenchTiming::device, BenchTiming::call})
      if (const BenchResult::Smallest s = r.smallest(peer, t); s.cells > 0)
        out += text("smallest ratio to %s: %.3f in %s (%zu cells, %s time)\n", peer, s.ratio, s.cell.c_str(), s.cells,
                    key(t));
  double share = 0;
  std::string where;
  for (const BenchCellResult& c : r.cells)
    if (const double x = c.cell.kind == BenchKind::scan ? c.share_of_copy(BenchTiming::device) : 0;
        x > 0 && (where.empty() || x < share))
      share = x, where = c.cell.name();
  if (!where.empty())
    out += text("smallest share of a copy of as many bytes: %.1f %% in %s\n", 100 * share, where.c_str());
  if (!r.no_peer.empty()) out += "no peer: " + r.no_peer + "\n";
  if (!r.peer.empty() && !r.shared && !r.not_shared.empty())
    out += "the peer has tensors of its own, of the same shapes: " + r.not_shared + "\n";
  for (const std::string& w : r.wrong()) out += "WRONG " + w + "\n";
  if (!r.fault.empty()) out += "the device failed: " + r.fault + "\n";
  if (required.ratio > 0)
    for (const std::string& cell : r.below(required.ratio, required.timing))
      out += text("below %.3g: %s\n", required.ratio, cell.c_str());
  std::string verdict = bench_verdict(r, required);
  std::transform(verdict.begin(), verdict.end(), verdict.begin(), [](unsigned char c) { return std::toupper(c); });
  return out + text("%s  %zu of %zu cells in %.0f s%s\n", verdict.c_str(), r.cells.size(), r.planned, r.seconds,
                    r.truncated ? ", truncated by --seconds" : "");
}

}  // namespace attest
