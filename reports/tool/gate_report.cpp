// What a gate says: a table for people, JSON for machines, JUnit for CI.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "properties/check.h"
#include "properties/device.h"
#include "reports/tool/gate.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity and no NaN; as text they survive.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

Json counts_json(const Counts& c) {
  Json out;
  for (const Outcome o :
       {Outcome::pass, Outcome::fail, Outcome::vacuous, Outcome::undecided, Outcome::rejected, Outcome::not_run})
    out[key(o)] = c[static_cast<std::size_t>(o)];
  return out;
}

// The executable's own bytes: two builds that differ in anything differ here.
const std::string& build_hash() {
  static const std::string hash = file_hash("/proc/self/exe");
  return hash;
}

bool is_custom(const LoadedKernel& k) { return k.kernel.contract_name.starts_with("custom"); }

Json failure_json(const Failure& f) {
  const Finding& x = f.result.finding;
  Json out;
  out["case"] = f.file;
  out["where"] = x.where;
  out["got"] = text("%a", x.got);
  out["want"] = text("%a", x.want);
  out["error"] = number(x.error);
  out["bound"] = number(x.bound);
  out["message"] = x.message;
  out["command"] = f.command;
  if (!f.unsaved.empty()) out["not_saved"] = f.unsaved;
  return out;
}

std::string xml(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string failure_line(const Pair& pair, const Failure& f) {
  const Finding& x = f.result.finding;
  std::string line = "FAIL " + std::string(pair.law->name) + "  " + pair.kernel->kernel.name;
  line += describe(f.result).substr(name(Outcome::fail).size());
  if (x.bound > 0 && std::isfinite(x.error)) line += text(", error/bound %.3g", x.error / x.bound);
  if (!f.command.empty()) line += "; reproduce: " + f.command;
  if (!f.unsaved.empty()) line += "; case not saved: " + f.unsaved;
  return line;
}

std::string gate_json(const Plan& plan, const GateOptions& options, const GateResult& result, bool running) {
  Json out;
  out["schema"] = "attest-gate/1";
  out["verdict"] = running ? "running" : std::string(result.verdict());
  out["seed"] = options.seed;
  out["seconds"] = std::round(result.seconds * 1000) / 1000;
  out["truncated"] = result.truncated;
  out["interrupted"] = result.interrupted;
  out["build"] = build_hash();
  if (std::any_of(plan.kernels.begin(), plan.kernels.end(),
                  [](const LoadedKernel& k) { return k.kernel.abi->device == ATTN_DEVICE_CUDA; }))
    for (const auto& [name, value] : describe_device(ATTN_DEVICE_CUDA)) out["device"][name] = value;
  out["shard"] = std::to_string(options.shard) + "/" + std::to_string(options.shards);
  out["cases_per_pair"] = options.cases;
  out["corpus_cases"] = plan.corpus.size();
  out["lambda"] = plan.lambda;
  out["planned"] = result.planned;
  out["checks"] = result.checks();
  out["counts"] = counts_json(result.counts());
  out["missing"] = result.missing;
  if (!result.strays.empty()) out["strays"] = result.strays;
  out["custom_contracts"] = Json::array();
  out["kernels"] = Json::array();
  for (const LoadedKernel& k : plan.kernels) {
    if (is_custom(k))
      out["custom_contracts"].push_back({{"kernel", k.kernel.name}, {"contract", k.kernel.contract_name}});
    Json kernel;
    kernel["name"] = k.kernel.name;
    kernel["origin"] = k.kernel.origin;
    kernel["contract"] = k.kernel.contract_name;
    kernel["contract_hash"] = k.contract_hash;
    kernel["laws"] = Json::array();
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      if (plan.pairs[i].kernel != &k) continue;
      const PairTally& t = result.tallies[i];
      Json law;
      law["law"] = plan.pairs[i].law->name;
      law["cases"] = t.checks();
      law["verdict"] = name(t.verdict);
      law["worst_ratio"] = number(t.worst_ratio);
      law["worst_case"] = t.worst_case;
      law["counts"] = counts_json(t.counts);
      if (!t.reason.empty()) law["reason"] = t.reason;
      if (!t.stopped.empty()) law["stopped"] = t.stopped, law["skipped"] = t.skipped;
      if (t.failure) law["failure"] = failure_json(*t.failure);
      kernel["laws"].push_back(law);
    }
    out["kernels"].push_back(kernel);
  }
  out["waivers"] = Json::array();
  for (const WaiverState& w : result.waivers)
    out["waivers"].push_back({{"kernel", w.waiver.kernel},
                              {"law", w.waiver.law},
                              {"reason", w.waiver.reason},
                              {"expires", w.waiver.expires},
                              {"state", w.state}});
  // A kernel's message may hold any bytes.
  return out.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

std::string gate_junit(const Plan& plan, const GateResult& result) {
  std::int64_t failures = 0, errors = 0, skipped = 0;
  std::string cases;
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const Pair& p = plan.pairs[i];
    const PairTally& t = result.tallies[i];
    std::string inside;
    const auto element = [&](const char* tag, const std::string& message, const std::string& body) {
      inside = text("<%s message=\"%s\">%s</%s>", tag, xml(message).c_str(), xml(body).c_str(), tag);
    };
    if (t.verdict == PairVerdict::fail) {
      ++failures;
      const std::string line = t.failure ? failure_line(p, *t.failure) : "fail";
      element("failure", line, line);
    } else if (t.verdict == PairVerdict::no_pass || t.verdict == PairVerdict::not_reached) {
      ++errors;
      element("error", "no PASS: " + t.reason, "");
    } else if (t.verdict != PairVerdict::pass) {
      ++skipped;
      std::string why = std::string(name(t.verdict)) + ": " + t.reason;
      if (t.verdict == PairVerdict::waived && t.failure) why = "waived: " + failure_line(p, *t.failure);
      element("skipped", why, "");
    }
    cases += "  <testcase classname=\"" + xml(p.kernel->kernel.name) + "\" name=\"" + xml(std::string(p.law->name)) +
             "\">" + inside + "</testcase>\n";
  }
  // What belongs to no pair: waivers that rot, requirements without a kernel.
  std::int64_t others = 0;
  const auto other = [&](const std::string& what, const std::string& message) {
    ++others, ++errors;
    cases += "  <testcase classname=\"gate\" name=\"" + xml(what) + "\"><error message=\"" + xml(message) +
             "\"></error></testcase>\n";
  };
  for (const WaiverState& w : result.waivers)
    if (w.fails_gate) other("waiver " + w.waiver.kernel + " " + w.waiver.law, "waiver is " + w.state);
  for (const std::string& stray : result.strays) other("stray", stray);
  for (const std::string& m : result.missing)
    if (m.starts_with("required ") || m.starts_with("not one ")) other("required", m);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         text(
             "<testsuite name=\"attest gate\" tests=\"%zu\" failures=\"%lld\" errors=\"%lld\" skipped=\"%lld\" "
             "time=\"%.3f\">\n",
             plan.pairs.size() + static_cast<std::size_t>(others), static_cast<long long>(failures),
             static_cast<long long>(errors), static_cast<long long>(skipped), result.seconds) +
         cases + "</testsuite>\n";
}

}  // namespace attest
