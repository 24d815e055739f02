#include "reports/tool/soak.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <set>

#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/gate.h"
#include "reports/tool/output.h"
#include "reports/tool/soak_log.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
using Json = SoakLog::Json;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);
void on_interrupt(int) { stop = true; }
// Within a round the gate has its own handler of Ctrl-C, which ends the round early.
void on_terminate(int) {
  stop = true;
  std::raise(SIGINT);
}

std::int64_t count(const Json& round, Outcome o) { return round["counts"].value(key(o), std::int64_t{0}); }

// What a plain gate needs to check this round's generated cases again.
std::string repeat_command(const SoakOptions& o, std::uint64_t seed) {
  std::string command = tool_command() + " gate" + plugin_flags(o.gate.selection);
  for (const std::string& k : o.gate.selection.kernels) command += " --kernels " + shell_quoted(k);
  for (const std::string& l : o.gate.selection.laws) command += " --laws " + shell_quoted(l);
  if (o.gate.shards > 1) command += text(" --shard %d/%d", o.gate.shard, o.gate.shards);
  return command + text(" --seed %llu --cases %d --corpus none", static_cast<unsigned long long>(seed), o.gate.cases);
}

// What must be the same for rounds to be added up.
Json header_of(const SoakOptions& o) {
  Json h;
  h["seed"] = o.gate.seed;
  h["cases"] = o.gate.cases;
  h["shard"] = text("%d/%d", o.gate.shard, o.gate.shards);
  h["build"] = file_hash("/proc/self/exe");
  h["plugins"] = Json::object();
  for (const std::string& p : o.gate.selection.plugins) h["plugins"][p] = file_hash(p);
  h["laws"] = Json::array();
  for (const Law* law : select_laws(o.gate.selection.laws)) h["laws"].push_back(law->name);
  h["kernels"] = Json::object();  // name: hash of the Contract
  for (const LoadedKernel& k : select_kernels(o.gate.selection)) h["kernels"][k.kernel.name] = k.contract_hash;
  return h;
}

Json round_json(std::int64_t round, const GateOptions& o, const Plan& plan, const GateResult& result) {
  Json j;
  j["round"] = round;
  j["seed"] = o.seed;
  j["complete"] = !result.truncated && !result.interrupted;
  j["seconds"] = std::round(result.seconds * 1000) / 1000;
  j["corpus_cases"] = plan.corpus.size();
  j["checks"] = result.checks();
  const Counts counts = result.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) j["counts"][key(static_cast<Outcome>(i))] = counts[i];
  j["failures"] = Json::array();
  j["worst_ratio"] = Json::object();
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const PairTally& t = result.tallies[i];
    const std::string& kernel = plan.pairs[i].kernel->kernel.name;
    if (t.failure)
      j["failures"].push_back({{"kernel", kernel},
                               {"law", plan.pairs[i].law->name},
                               {"case", t.failure->file},
                               {"finding", describe(t.failure->result)},
                               {"command", t.failure->command}});
    const double worst = std::isfinite(t.worst_ratio) ? t.worst_ratio : HUGE_VAL;
    if (worst == HUGE_VAL)
      j["worst_ratio"][kernel] = "inf";
    else if (!j["worst_ratio"].contains(kernel) ||
             (j["worst_ratio"][kernel].is_number() && j["worst_ratio"][kernel] < worst))
      j["worst_ratio"][kernel] = worst;
  }
  j["missing"] = result.missing;
  return j;
}

struct Totals {
  std::int64_t rounds = 0, checks = 0, passed = 0, failed = 0;
  double seconds = 0;
  std::set<std::string> missing;  // without a PASS in every complete round
};

// "kernel law" of "kernel law: 24 checks: 24 vacuous (reason)".
std::string pair_of(const std::string& missing) { return missing.substr(0, missing.find(':')); }

Totals add_up(const SoakLog& log) {
  Totals t;
  bool first = true;
  for (const auto& [number, round] : log.rounds()) {
    ++t.rounds;
    t.checks += round.value("checks", std::int64_t{0});
    t.passed += count(round, Outcome::pass);
    t.failed += count(round, Outcome::fail);
    t.seconds += round.value("seconds", 0.0);
    if (!round["complete"].get<bool>()) continue;
    std::set<std::string> here, both;
    for (const auto& m : round.value("missing", Json::array())) here.insert(pair_of(m.get<std::string>()));
    std::set_intersection(t.missing.begin(), t.missing.end(), here.begin(), here.end(),
                          std::inserter(both, both.end()));
    t.missing = first ? here : both;
    first = false;
  }
  return t;
}

bool enough(const SoakOptions& o, const SoakLog& log) {
  const Totals t = add_up(log);
  return (o.rounds > 0 && log.next() >= o.rounds) || (o.checks > 0 && t.passed + t.failed >= o.checks);
}

// Runs one round and logs it.
void run_round(const SoakOptions& o, std::int64_t round, double seconds_left, SoakLog& log) {
  GateOptions gate = o.gate;
  gate.seed = round_seed(o.gate.seed, round);
  gate.seconds = seconds_left;
  if (round > 0) gate.corpus = "none";  // it never changes
  const Plan plan = make_plan(gate);
  const GateResult result = judge(gate, plan, {});
  stop = stop || result.interrupted;
  if (result.done == 0 && result.planned > 0) return;
  log.append(round_json(round, gate, plan, result));
  for (std::size_t i = 0; i < plan.pairs.size(); ++i)
    if (result.tallies[i].failure) std::cout << failure_line(plan.pairs[i], *result.tallies[i].failure) << "\n";
  if (result.counts()[static_cast<std::size_t>(Outcome::fail)] > 0)
    std::cout << "round " << round << " again: " << repeat_command(o, gate.seed) << "\n" << std::flush;
}

std::string summary(const SoakOptions& o, const Totals& t, const char* verdict) {
  return text("%s  soak of seed %llu: %lld rounds, %lld checks, %lld of them PASS, %lld failures, %.1f s; log %s\n",
              verdict, static_cast<unsigned long long>(o.gate.seed), static_cast<long long>(t.rounds),
              static_cast<long long>(t.checks), static_cast<long long>(t.passed), static_cast<long long>(t.failed),
              t.seconds, o.log.c_str());
}

}  // namespace

std::uint64_t round_seed(std::uint64_t seed, std::int64_t round) {
  // splitmix64: seeds that differ in one bit give rounds that have nothing in common.
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(round) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) >> 11;
}

int run_soak(const SoakOptions& options) {
  const Clock::time_point start = Clock::now();
  SoakLog log(options.log, header_of(options));
  const OutDirectory out(options.gate.out);
  install_crash_notes(options.gate.out);
  if (!log.note().empty()) std::cerr << "attest: " << log.note() << "\n";
  const bool live = !options.gate.quiet && isatty(STDERR_FILENO);
  if (const Totals t = add_up(log); t.rounds > 0 && !options.gate.quiet)
    std::cerr << text("%s: goes on after %lld rounds with %lld checks\n", options.log.c_str(),
                      static_cast<long long>(t.rounds), static_cast<long long>(t.checks));
  stop = false;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_terminate);
  while (!stop && !enough(options, log)) {
    const double spent = std::chrono::duration<double>(Clock::now() - start).count();
    if (options.gate.seconds > 0 && spent >= options.gate.seconds) break;
    run_round(options, log.next(), options.gate.seconds > 0 ? options.gate.seconds - spent : 0, log);
    const Totals t = add_up(log);
    if (live)
      std::fprintf(stderr, "%lld rounds, %lld checks, %.0f checks/s, %lld failures\n", static_cast<long long>(t.rounds),
                   static_cast<long long>(t.checks), static_cast<double>(t.checks) / std::max(t.seconds, 1e-3),
                   static_cast<long long>(t.failed));
  }
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);

  const Totals t = add_up(log);
  for (const std::string& m : t.missing) std::cout << "NO PASS in any round: " << m << "\n";
  const int code = t.failed > 0 ? 1 : t.passed == 0 || !t.missing.empty() ? 3 : 0;
  std::cout << summary(options, t, code == 0 ? "PASS" : code == 1 ? "FAIL" : "INCOMPLETE") << std::flush;
  return code;
}

}  // namespace attest
