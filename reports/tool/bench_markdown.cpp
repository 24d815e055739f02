#include <algorithm>

#include "reports/tool/bench_report.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr BenchTiming device = BenchTiming::device, call = BenchTiming::call;

// "412.3 [410.1, 413.0]": the rate at the median time, and at its quartiles.
std::string rate(const BenchCellResult& r, const BenchContender* c) {
  if (!c) return "-";
  const BenchSpread s = bench_spread(c->times.device);
  const double median = r.rate(*c, device);
  return text("%.1f [%.1f, %.1f]", median, median * s.median / s.high, median * s.median / s.low);
}

std::string ratio(double x) { return x > 0 ? text("%.2f", x) : "-"; }

std::string microseconds(const BenchCellResult& r, BenchRole role, const char* prefix) {
  const BenchContender* c = r.fastest(role, prefix, call);
  return c ? text("%.1f", 1e6 * bench_spread(c->times.call).median) : "-";
}

std::string short_name(const BenchContender* c, const char* prefix) {
  if (!c) return "-";
  return c->name.starts_with(prefix) ? c->name.substr(std::string(prefix).size()) : c->name;
}

std::string differences(const BenchContender* ours) {
  std::string out;
  if (ours)
    for (const auto& [with, d] : ours->differences) out += (out.empty() ? "" : ", ") + text("%.1e", d.value);
  return out.empty() ? "-" : out;
}

std::string attention_row(const BenchCellResult& r) {
  const BenchContender* ours = r.fastest(BenchRole::kernel, "", device);
  const BenchContender *flash = r.fastest(BenchRole::peer, flash_peer, device),
                       *cudnn = r.fastest(BenchRole::peer, cudnn_peer, device);
  const std::string which = flash && flash->name != flash_peer ? " (" + short_name(flash, "torch.flash-") + ")" : "";
  return "| " + r.cell.name() + " | " + rate(r, ours) + " | " + short_name(ours, "") + " | " + rate(r, flash) + which +
         " | " + ratio(r.ratio(flash_peer, device)) + " | " + rate(r, cudnn) + " | " +
         ratio(r.ratio(cudnn_peer, device)) + " | " + microseconds(r, BenchRole::kernel, "") + " | " +
         microseconds(r, BenchRole::peer, flash_peer) + " | " + ratio(r.ratio(flash_peer, call)) + " | " +
         differences(ours) + " |\n";
}

std::string attention_table(const BenchResult& result, BenchKind kind, const char* title) {
  std::string rows, unit;
  for (const BenchCellResult& c : result.cells)
    if (c.cell.kind == kind) rows += attention_row(c), unit = c.cell.unit();
  if (rows.empty()) return "";
  return std::string("\n## ") + title + "\n\n| cell | ours, " + unit + " | kernel | FLASH | ratio | cuDNN | ratio | " +
         "call, us | FLASH call, us | ratio | differs |\n|---|---|---|---|---|---|---|---|---|---|---|\n" + rows;
}

std::string scan_table(const BenchResult& result) {
  std::string rows;
  const double long_copy = result.copy_rate();
  for (const BenchCellResult& r : result.cells) {
    if (r.cell.kind != BenchKind::scan) continue;
    const BenchContender* ours = r.fastest(BenchRole::kernel, "", device);
    rows += "| " + r.cell.name() + " | " + rate(r, ours) + " | " + short_name(ours, "") + " | " +
            text("%.1f %%", 100 * r.share_of_copy(device)) + " | " +
            rate(r, r.fastest(BenchRole::yardstick, "copy", device)) + " | " +
            (ours && long_copy > 0 ? text("%.1f %%", 100 * r.rate(*ours, device) / long_copy) : "") + " | " +
            rate(r, r.fastest(BenchRole::peer, "torch.logsumexp", device)) + " | " +
            microseconds(r, BenchRole::kernel, "") + " | " + differences(ours) + " |\n";
  }
  if (rows.empty()) return "";
  return "\n## Step: rows of scores to (m, l)\n\n"
         "| rows x columns | ours, GB/s | kernel | share of a copy of as many bytes | that copy, GB/s "
         "| share of a copy of 1 GiB | torch.logsumexp | call, us | differs (m, l) "
         "|\n|---|---|---|---|---|---|---|---|---|\n" +
         rows;
}

// Every kernel of ours that was asked, in every cell.
std::string kernels_table(const BenchResult& result) {
  std::vector<std::string> names;
  for (const BenchCellResult& r : result.cells)
    for (const BenchContender& c : r.contenders)
      if (c.role == BenchRole::kernel && r.cell.is_attention() &&
          std::find(names.begin(), names.end(), c.name) == names.end())
        names.push_back(c.name);
  if (names.size() < 2) return "";
  std::string out = "\n## All our kernels\n\n| cell |";
  for (const std::string& n : names) out += " " + n + " |";
  out += "\n|---|";
  for (std::size_t i = 0; i < names.size(); ++i) out += "---|";
  for (const BenchCellResult& r : result.cells) {
    if (!r.cell.is_attention()) continue;
    out += "\n| " + r.cell.name() + " |";
    for (const std::string& n : names) {
      std::string entry = "";
      for (const BenchContender& c : r.contenders)
        if (c.name == n)
          entry = c.timed()                          ? text("%.1f", r.rate(c, device))
                  : c.status == BenchStatus::ok      ? "-"
                  : c.status == BenchStatus::refused ? "refused"
                  : c.status == BenchStatus::wrong   ? "WRONG"
                                                     : "FAILED";
      out += " " + entry + " |";
    }
  }
  return out + "\n";
}

}  // namespace

std::string bench_markdown(const BenchResult& r, const BenchRequirement& required, const BenchAbout& about) {
  std::string out = "# Speed beside PyTorch\n\nMade by\n\n    " + about.command +
                    text("\n\nin %.0f seconds; build %s, seed %llu.\n\n", r.seconds, about.build.c_str(),
                         static_cast<unsigned long long>(about.seed));
  if (!r.not_run.empty()) return out + "NOT_RUN: " + r.not_run + "\n";
  for (const auto& [label, value] : r.facts) out += "- " + label + ": " + value + "\n";
  std::string peer;
  for (const auto& [label, value] : r.peer) peer += (peer.empty() ? "" : ", ") + label + " " + value;
  out += "- peer: " + (peer.empty() ? "none" : peer) + (r.no_peer.empty() ? "" : " (" + r.no_peer + ")") + "\n";
  int low = 0, high = 0, watts = 0;
  for (const BenchCellResult& c : r.cells)
    if (const int mhz = c.clocks.sm_mhz; mhz > 0)
      low = low == 0 ? mhz : std::min(low, mhz), high = std::max(high, mhz), watts = std::max(watts, c.clocks.watts);
  if (high > 0) out += text("- SM clock as read after cells: %d to %d MHz; power up to %d W\n", low, high, watts);
  out += text(
      "\nTimes are by CUDA events, medians, all contenders of a cell in turns, %d rounds. Rates are of the device's "
      "own "
      "time: calls back to back, all enqueued before the first begins, so that no launch is waited for; in brackets "
      "the "
      "quartiles. `call` is one call on an idle device, launch included. Inputs are random, in as many sets as exceed "
      "four times the L2 cache; outputs were poisoned and checked once against another kernel and against the peer's "
      "(`differs`: largest differences). A ratio above 1 means that ours is faster. %s\n",
      about.rounds,
      r.peer.empty() ? ""
      : r.shared     ? "The peer works on the same values, copied from our tensors into memory of its own."
                     : ("The peer has tensors of its own, of the same shapes: " + r.not_shared).c_str());
  out += "\n```\n" + bench_summary(r, required) + "```\n";
  out += attention_table(r, BenchKind::forward, "Forward: 16k tokens, 2048 hidden");
  out += attention_table(r, BenchKind::decode, "Decode: 32 query heads over 8, d = 128; bytes of K and V");
  out += scan_table(r);
  out += kernels_table(r);
  for (const BenchCellResult& c : r.cells) {
    if (c.cell.kind != BenchKind::copy && c.cell.kind != BenchKind::matmul) continue;
    out += "\n" + bench_line(c, device) + "\n";
  }
  return out;
}

}  // namespace attest
