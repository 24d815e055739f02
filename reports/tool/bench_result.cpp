#include "reports/tool/bench_result.h"

namespace attest {

namespace {

double median(const BenchContender& c, BenchTiming timing) { return bench_spread(c.samples(timing)).median; }

}  // namespace

const BenchContender* BenchCellResult::fastest(BenchRole role, const std::string& prefix, BenchTiming timing) const {
  const BenchContender* best = nullptr;
  for (const BenchContender& c : contenders)
    if (c.role == role && c.timed() && !c.samples(timing).empty() && c.name.starts_with(prefix) &&
        (!best || median(c, timing) < median(*best, timing)))
      best = &c;
  return best;
}

double BenchCellResult::rate(const BenchContender& c, BenchTiming timing) const {
  const double seconds = median(c, timing);
  if (!(seconds > 0)) return 0;
  return c.bytes > 0 ? c.bytes / 1e9 / seconds : cell.rate(seconds);
}

double BenchCellResult::ratio(const std::string& peer, BenchTiming timing) const {
  const BenchContender* ours = fastest(BenchRole::kernel, "", timing);
  const BenchContender* theirs = fastest(BenchRole::peer, peer, timing);
  return ours && theirs && median(*ours, timing) > 0 ? median(*theirs, timing) / median(*ours, timing) : 0;
}

double BenchCellResult::share_of_copy(BenchTiming timing) const {
  const BenchContender* ours = fastest(BenchRole::kernel, "", timing);
  // One call of a copy is as long as it is; its bandwidth is the device's own.
  const BenchContender* copy = fastest(BenchRole::yardstick, "copy", BenchTiming::device);
  const double bandwidth = copy ? rate(*copy, BenchTiming::device) : 0;
  return ours && bandwidth > 0 ? rate(*ours, timing) / bandwidth : 0;
}

BenchResult::Smallest BenchResult::smallest(const std::string& peer, BenchTiming timing) const {
  Smallest s;
  for (const BenchCellResult& c : cells) {
    if (!c.cell.is_attention()) continue;
    const double ratio = c.ratio(peer, timing);
    if (ratio == 0) continue;
    if (s.cells == 0 || ratio < s.ratio) s.ratio = ratio, s.cell = c.cell.name();
    ++s.cells;
  }
  return s;
}

std::vector<std::string> BenchResult::below(double wanted, BenchTiming timing) const {
  std::vector<std::string> out;
  for (const BenchCellResult& c : cells)
    if (const double ratio = c.cell.is_attention() ? c.ratio(flash_peer, timing) : 0; ratio > 0 && ratio < wanted)
      out.push_back(c.cell.name());
  return out;
}

std::vector<std::string> BenchResult::wrong() const {
  std::vector<std::string> out;
  for (const BenchCellResult& c : cells)
    for (const BenchContender& k : c.contenders)
      if (k.role == BenchRole::kernel && (k.status == BenchStatus::wrong || k.status == BenchStatus::failed))
        out.push_back(k.name + " in " + c.cell.name() + ": " + k.reason);
  return out;
}

double BenchResult::copy_rate() const {
  std::vector<double> rates;
  for (const BenchCellResult& c : cells)
    if (c.cell.kind == BenchKind::copy)
      if (const BenchContender* copy = c.fastest(BenchRole::yardstick, "copy", BenchTiming::device))
        rates.push_back(c.rate(*copy, BenchTiming::device));
  return bench_spread(rates).median;
}

std::string bench_verdict(const BenchResult& r, const BenchRequirement& required) {
  if (!r.not_run.empty()) return "not_run";
  if (!r.fault.empty() || !r.wrong().empty()) return "fail";
  if (required.ratio > 0 && !r.below(required.ratio, required.timing).empty()) return "fail";
  if (r.interrupted) return "interrupted";
  bool timed = false, all = r.cells.size() == r.planned;
  for (const BenchCellResult& c : r.cells) {
    timed = timed || c.fastest(BenchRole::kernel, "", required.timing);
    all = all && (!c.cell.is_attention() || c.ratio(flash_peer, required.timing) > 0);
  }
  if (required.ratio > 0 && (!all || r.smallest(flash_peer, required.timing).cells == 0)) return "incomplete";
  return required.device && !timed ? "incomplete" : "pass";
}

int bench_exit_code(const BenchResult& r, const BenchRequirement& required) {
  const std::string verdict = bench_verdict(r, required);
  if (verdict == "not_run") return required.device || required.ratio > 0 ? 3 : 0;
  return verdict == "fail" ? 1 : verdict == "interrupted" ? 130 : verdict == "incomplete" ? 3 : 0;
}

bool bench_is_wrong(const BenchDifference& d, std::int32_t dtype) {
  // fp32 outputs of sums in different orders: 2^-12 is far above what they differ by, far below a lost tile.
  const double allowed = dtype == ATTN_BF16 ? 0x1p-6 : dtype == ATTN_FP16 ? 0x1p-9 : 0x1p-12;
  // Random inputs leave no output of zeros alone: a comparison that finds no other has not taken place.
  return d.nonfinite > 0 || !(d.largest > 0) || !(d.value <= allowed * d.largest);
}

}  // namespace attest
