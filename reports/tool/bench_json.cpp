#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/tool/bench_report.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

// Times and rates to six digits: more is noise.
Json rounded(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  if (x == 0) return 0.0;
  const double unit = std::pow(10, 5 - std::floor(std::log10(std::abs(x))));
  return std::round(x * unit) / unit;
}

Json spread_json(const std::vector<double>& seconds) {
  const BenchSpread s = bench_spread(seconds);
  return {{"median", rounded(s.median)},
          {"quartiles", {rounded(s.low), rounded(s.high)}},
          {"range", {rounded(s.min), rounded(s.max)}},
          {"samples", s.samples}};
}

const char* key(BenchRole r) { return r == BenchRole::kernel ? "kernel" : r == BenchRole::peer ? "peer" : "yardstick"; }
const char* key(BenchStatus s) {
  return s == BenchStatus::ok        ? "ok"
         : s == BenchStatus::refused ? "refused"
         : s == BenchStatus::failed  ? "failed"
                                     : "wrong";
}

Json contender_json(const BenchCellResult& cell, const BenchContender& c) {
  Json out = {{"name", c.name}, {"role", key(c.role)}, {"status", key(c.status)}};
  if (!c.reason.empty()) out["reason"] = c.reason;
  if (!c.times.device.empty()) {
    out["rate"] = rounded(cell.rate(c, BenchTiming::device));
    out["device_seconds"] = spread_json(c.times.device);
    out["calls_per_sample"] = c.times.calls;
    if (!c.times.hidden) out["launches_hidden"] = false;
    out["call_rate"] = rounded(cell.rate(c, BenchTiming::call));
    out["call_seconds"] = spread_json(c.times.call);
  }
  for (const auto& [with, d] : c.differences)
    out["differences"].push_back({{"from", with},
                                  {"largest_difference", rounded(d.value)},
                                  {"largest_output", rounded(d.largest)},
                                  {"nonfinite", d.nonfinite}});
  return out;
}

Json ratios_json(const BenchCellResult& r, BenchTiming t) {
  Json out;
  for (const char* peer : {flash_peer, cudnn_peer, "torch.efficient", "torch.logsumexp"})
    if (const double x = r.ratio(peer, t); x > 0) out[peer] = rounded(x);
  if (const double x = r.cell.kind == BenchKind::scan ? r.share_of_copy(t) : 0; x > 0) out["copy"] = rounded(x);
  if (const BenchContender* best = r.fastest(BenchRole::kernel, "", t)) out["fastest_kernel"] = best->name;
  for (const char* peer : {flash_peer, cudnn_peer})
    if (const BenchContender* p = r.fastest(BenchRole::peer, peer, t)) out[std::string("fastest_") + peer] = p->name;
  return out;
}

Json cell_json(const BenchCellResult& r) {
  const BenchCell& c = r.cell;
  Json out = {{"cell", c.name()}};
  if (c.is_attention())
    out.update({{"format", bench_format(c.dtype)},
                {"batch", c.batch},
                {"q_heads", c.q_heads},
                {"kv_heads", c.kv_heads},
                {"tq", c.tq},
                {"tk", c.tk},
                {"d", c.d},
                {"causal", c.causal}});
  else
    out.update({{"rows", c.rows}, {"columns", c.columns}});
  out["unit"] = c.unit();
  out["flops"] = c.flops();
  out["bytes"] = c.bytes();
  if (!r.skipped.empty()) {
    out["skipped"] = r.skipped;
    return out;
  }
  out["input_sets"] = r.sets;
  out["clocks"] = {{"sm_mhz", r.clocks.sm_mhz},
                   {"memory_mhz", r.clocks.memory_mhz},
                   {"watts", r.clocks.watts},
                   {"celsius", r.clocks.celsius}};
  out["device_ratios"] = ratios_json(r, BenchTiming::device);
  out["call_ratios"] = ratios_json(r, BenchTiming::call);
  out["contenders"] = Json::array();
  for (const BenchContender& k : r.contenders) out["contenders"].push_back(contender_json(r, k));
  return out;
}

}  // namespace

std::string bench_json(const BenchResult& r, const BenchRequirement& required, const BenchAbout& about, bool running) {
  Json out;
  out["schema"] = "attest-bench/1";
  out["verdict"] = running ? "running" : bench_verdict(r, required);
  out["command"] = about.command;
  out["build"] = about.build;
  out["seed"] = about.seed;
  out["rounds"] = about.rounds;
  out["seconds"] = rounded(r.seconds);
  out["truncated"] = r.truncated;
  out["interrupted"] = r.interrupted;
  if (!r.not_run.empty()) out["not_run"] = r.not_run;
  if (!r.fault.empty()) out["fault"] = r.fault;
  out["facts"] = Json::object();
  for (const auto& [label, value] : r.facts) out["facts"][label] = value;
  out["peer"] = Json::object();
  for (const auto& [label, value] : r.peer) out["peer"][label] = value;
  if (!r.no_peer.empty()) out["peer"]["absent"] = r.no_peer;
  out["peer"]["same_tensors"] = r.shared;
  if (!r.not_shared.empty()) out["peer"]["not_shared"] = r.not_shared;
  out["copy_GB_per_s"] = rounded(r.copy_rate());
  out["summary"] = Json::object();
  for (const BenchTiming t : {BenchTiming::device, BenchTiming::call})
    for (const char* peer : {flash_peer, cudnn_peer})
      if (const BenchResult::Smallest s = r.smallest(peer, t); s.cells > 0)
        out["summary"][std::string(t == BenchTiming::device ? "device" : "call") + "_smallest_ratio"][peer] = {
            {"ratio", rounded(s.ratio)}, {"cell", s.cell}, {"cells", s.cells}};
  if (required.ratio > 0) {
    out["required_ratio"] = required.ratio;
    out["required_of"] = required.timing == BenchTiming::device ? "device" : "call";
    out["below"] = r.below(required.ratio, required.timing);
  }
  out["wrong"] = r.wrong();
  out["planned"] = r.planned;
  out["cells"] = Json::array();
  for (const BenchCellResult& c : r.cells) out["cells"].push_back(cell_json(c));
  // A library's message may hold any bytes.
  return out.dump(1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

}  // namespace attest
