// The gate's report as people read it.
#include <algorithm>
#include <cctype>
#include <map>

#include "reports/tool/gate.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

struct KernelLine {
  std::int64_t laws = 0, passed = 0, absent = 0;  // absent: NOT_RUN throughout
  Counts counts{};
  double worst = 0;
  std::string_view worst_law;
};

KernelLine sum_up(const Plan& plan, const GateResult& result, const LoadedKernel& kernel) {
  KernelLine line;
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    if (plan.pairs[i].kernel != &kernel) continue;
    const PairTally& t = result.tallies[i];
    for (std::size_t o = 0; o < t.counts.size(); ++o) line.counts[o] += t.counts[o];
    if (t.verdict == PairVerdict::not_applicable) continue;
    ++line.laws;
    line.passed += t.verdict == PairVerdict::pass;
    line.absent += t.verdict == PairVerdict::not_run;
    if (t.worst_ratio > line.worst) line.worst = t.worst_ratio, line.worst_law = plan.pairs[i].law->name;
  }
  return line;
}

std::int64_t checks(const KernelLine& line) {
  std::int64_t n = 0;
  for (const std::int64_t c : line.counts) n += c;
  return n;
}

// "3 %", and "<1 %" rather than none of some.
std::string share(std::int64_t part, std::int64_t whole) {
  return part * 100 < whole ? "<1 %" : text("%lld %%", static_cast<long long>(part * 100 / whole));
}

// "36 rejected (3 %), 4 vacuous": what was checked and did not pass.
std::string others(const KernelLine& line) {
  std::string out;
  for (const Outcome o : {Outcome::fail, Outcome::vacuous, Outcome::undecided, Outcome::rejected, Outcome::not_run})
    if (const std::int64_t n = line.counts[static_cast<std::size_t>(o)]; n > 0)
      out += (out.empty() ? "" : ", ") + std::to_string(n) + " " + key(o) +
             (o == Outcome::rejected ? " (" + share(n, checks(line)) + ")" : "");
  return out;
}

std::string table(const Plan& plan, const GateResult& result) {
  std::size_t wide = 6, contract = 8;
  for (const LoadedKernel& k : plan.kernels) {
    wide = std::max(wide, k.kernel.name.size());
    contract = std::max(contract, std::min<std::size_t>(k.kernel.contract_name.size(), 24));
  }
  const int w = static_cast<int>(wide), v = static_cast<int>(contract);
  std::string out = text("%-*s  %-*s  %7s  %7s  %-28s %s\n", w, "kernel", v, "contract", "laws", "checks",
                         "worst error/bound", "not passed");
  for (const LoadedKernel& k : plan.kernels) {
    const KernelLine line = sum_up(plan, result, k);
    const std::string worst =
        line.worst_law.empty() ? "-" : text("%.3f %s", line.worst, std::string(line.worst_law).c_str());
    const std::string contract_shown = k.kernel.contract_name.starts_with("custom") ? "custom" : k.kernel.contract_name;
    out += text("%-*s  %-*s  %7s  %7lld  %-28s %s\n", w, k.kernel.name.c_str(), v, contract_shown.c_str(),
                text("%lld/%lld", static_cast<long long>(line.passed), static_cast<long long>(line.laws)).c_str(),
                static_cast<long long>(checks(line)), worst.c_str(), others(line).c_str());
  }
  return out;
}

// A kernel that rejects nearly everything may have a PASS under every law and yet have been asked next to nothing.
std::string mostly_rejecting(const Plan& plan, const GateResult& result) {
  std::string out;
  for (const LoadedKernel& k : plan.kernels) {
    const KernelLine line = sum_up(plan, result, k);
    const std::int64_t rejected = line.counts[static_cast<std::size_t>(Outcome::rejected)];
    if (rejected * 10 <= checks(line) * 9) continue;
    std::string why;
    for (std::size_t i = 0; i < plan.pairs.size() && why.empty(); ++i) {
      const PairTally& t = result.tallies[i];
      const auto count = [&](Outcome o) { return t.counts[static_cast<std::size_t>(o)]; };
      // Then the reason is that of a rejection.
      if (plan.pairs[i].kernel == &k && count(Outcome::rejected) > 0 &&
          count(Outcome::vacuous) + count(Outcome::undecided) + count(Outcome::not_run) == 0)
        why = t.reason;
    }
    out += text("REJECTS %s: %s of its checks (%lld of %lld)%s\n", k.kernel.name.c_str(),
                share(rejected, checks(line)).c_str(), static_cast<long long>(rejected),
                static_cast<long long>(checks(line)), why.empty() ? "" : (", such as: " + why).c_str());
  }
  return out;
}

// What was not run any more. Where the whole kernel was stopped, one line stands for all its pairs that it cost
// nothing.
std::string stopped(const Plan& plan, const GateResult& result) {
  std::string out;
  for (const LoadedKernel& k : plan.kernels) {
    std::int64_t laws = 0, skipped = 0;
    std::string why;
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      const PairTally& t = result.tallies[i];
      if (plan.pairs[i].kernel != &k || t.skipped == 0) continue;
      if (t.failure) {
        out += text("STOPPED %s %s: %s; %lld of its checks were not run\n", k.kernel.name.c_str(),
                    std::string(plan.pairs[i].law->name).c_str(), t.stopped.c_str(), static_cast<long long>(t.skipped));
        continue;
      }
      ++laws, skipped += t.skipped;
      why = t.stopped;
    }
    if (laws > 0)
      out += text("STOPPED %s, %lld other laws: %s; %lld checks were not run\n", k.kernel.name.c_str(),
                  static_cast<long long>(laws), why.c_str(), static_cast<long long>(skipped));
  }
  return out;
}

// Laws that bound none of the kernels: most often right (a merge has no causal mask), never silent.
std::string idle_laws(const Plan& plan, const GateResult& result) {
  std::string idle;
  for (const Law* law : plan.laws) {
    bool bound = false, here = false;
    for (std::size_t i = 0; i < plan.pairs.size(); ++i)
      if (plan.pairs[i].law == law) here = true, bound = bound || result.tallies[i].checks() > 0;
    if (here && !bound) idle += (idle.empty() ? "" : ", ") + std::string(law->name);
  }
  return idle.empty() ? "" : "laws that bound none of these kernels: " + idle + "\n";
}

// Not required, so it does not count; a kernel that nobody ran must still be seen. One line for each reason.
std::string absent_kernels(const Plan& plan, const GateResult& result) {
  std::map<std::string, std::vector<std::string>> kernels;
  for (const LoadedKernel& k : plan.kernels) {
    const KernelLine line = sum_up(plan, result, k);
    if (line.absent == 0 || line.absent < line.laws) continue;
    const auto at = std::find_if(plan.pairs.begin(), plan.pairs.end(), [&](const Pair& p) {
      return p.kernel == &k &&
             result.tallies[static_cast<std::size_t>(&p - plan.pairs.data())].verdict == PairVerdict::not_run;
    });
    kernels[result.tallies[static_cast<std::size_t>(at - plan.pairs.begin())].reason].push_back(k.kernel.name);
  }
  std::string out;
  for (const auto& [reason, names] : kernels) out += not_run_line(names, reason);
  return out;
}

// Kernels of which something was judged.
std::size_t kernels_that_ran(const Plan& plan, const GateResult& result) {
  return static_cast<std::size_t>(std::count_if(plan.kernels.begin(), plan.kernels.end(), [&](const LoadedKernel& k) {
    const KernelLine line = sum_up(plan, result, k);
    return line.absent < line.laws || line.laws == 0;
  }));
}

}  // namespace

std::string gate_text(const Plan& plan, const GateOptions& options, const GateResult& result) {
  std::string out;
  if (!options.quiet) {
    out += table(plan, result) + "\n" + idle_laws(plan, result);
    for (const LoadedKernel& k : plan.kernels)
      if (k.kernel.contract_name.starts_with("custom"))
        out += "Contract of " + k.kernel.name + ": " + k.kernel.contract_name + "\n";
    out += absent_kernels(plan, result);
  }
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const PairTally& t = result.tallies[i];
    if (t.failure)
      out += (t.verdict == PairVerdict::waived ? "WAIVED " : "") + failure_line(plan.pairs[i], *t.failure) + "\n";
  }
  out += stopped(plan, result);
  for (const std::string& stray : result.strays) out += "FAIL " + stray + "\n";
  for (const std::string& m : result.missing) out += "NO PASS " + m + "\n";
  out += mostly_rejecting(plan, result);
  for (const WaiverState& w : result.waivers)
    out += (w.fails_gate ? "FAIL waiver " : "waiver ") + w.waiver.kernel + " " + w.waiver.law + ": " + w.state +
           ", until " + w.waiver.expires + ": " + w.waiver.reason +
           (w.state == "gone"      ? "; the failure is gone: delete the waiver"
            : w.state == "expired" ? "; mend the kernel, or renew the waiver with a reason"
                                   : "") +
           "\n";
  if (result.interrupted)
    out += text("interrupted after %lld of %lld checks; what was checked is in the report, nothing is lost\n",
                static_cast<long long>(result.done), static_cast<long long>(result.planned));
  else if (result.truncated)
    out += text("truncated by --seconds after %lld of %lld checks\n", static_cast<long long>(result.done),
                static_cast<long long>(result.planned));
  std::string verdict(result.verdict());
  std::transform(verdict.begin(), verdict.end(), verdict.begin(), [](unsigned char c) { return std::toupper(c); });
  const Counts c = result.counts();
  std::size_t judged = 0;
  for (const PairTally& t : result.tallies) judged += t.checks() > 0 && t.verdict != PairVerdict::not_run;
  const std::size_t ran = kernels_that_ran(plan, result);
  const std::string absent = ran < plan.kernels.size() ? text(", %zu kernels NOT_RUN", plan.kernels.size() - ran) : "";
  const std::int64_t checks = result.checks() - c[static_cast<std::size_t>(Outcome::not_run)];
  out += text("%s  seed %llu: %lld checks, %zu kernels, %zu kernel x law pairs, %lld failures%s%s%s, %.1f s\n",
              verdict.c_str(), static_cast<unsigned long long>(options.seed), static_cast<long long>(checks), ran,
              judged, static_cast<long long>(c[static_cast<std::size_t>(Outcome::fail)]), absent.c_str(),
              options.shards > 1 ? text(", shard %d/%d", options.shard, options.shards).c_str() : "",
              result.truncated ? ", truncated" : "", result.seconds);
  return out;
}

}  // namespace attest
