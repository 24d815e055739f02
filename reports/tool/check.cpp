#include "reports/tool/check.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "oracle/buffer.h"
#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/gate.h"
#include "reports/tool/record.h"
#include "reports/tool/text.h"
#include "reports/tool/worker_pool.h"

namespace attest {
namespace {

std::string truth_text(const TruthElement& t) {
  switch (t.kind) {
    case TruthKind::zero:
      return "0 exactly (no visible key)";
    case TruthKind::neg_inf:
      return "-inf";
    case TruthKind::pos_inf:
      return "+inf";
    case TruthKind::nan:
      return "NaN";
    case TruthKind::finite:
      break;
  }
  return text("%a (%.17g)%s, radius %.2g", t.hi, t.hi, t.lo != 0 ? text(" %+.3g", t.lo).c_str() : "", t.radius);
}

std::string element_text(const ElementReport& e) {
  std::string verdict(name(e.judgement.verdict));
  return text("    %-9s %s\n", verdict.c_str(), e.where.c_str()) +
         (std::isnan(e.got) ? "      got    nan\n" : text("      got    %a (%.17g)\n", e.got, e.got)) +
         "      truth  " + truth_text(e.truth) + ", " + e.tier + "\n" +
         text("      error  %.4g, bound %.4g (%.4g before output rounding), error/bound %.4g%s\n", e.judgement.error,
              e.bound.deterministic, e.bound.before_rounding, e.judgement.ratio,
              e.bound.ill_conditioned ? ", ill-conditioned" : "");
}

std::string elements_text(const CaseReport& report, const std::string& format, bool all) {
  if (report.status.status != Outcome::pass)
    return "  did not run: " + std::string(name(report.status.status)) + ": " + report.status.reason + "\n";
  std::string out = text("  rows judged: %lld of %lld\n", static_cast<long long>(report.rows_judged),
                         static_cast<long long>(report.rows));
  if (report.inputs_rounded)
    out += "  expected: not compared for " + format + ", the case's inputs are not exact in this format\n";
  const std::size_t n = report.elements.size(), shown = all ? n : std::min<std::size_t>(n, 10);
  out += text("  output elements, worst first (%zu of %zu%s):\n", shown, n, shown < n ? "; --all for all" : "");
  for (std::size_t i = 0; i < shown; ++i) out += element_text(report.elements[i]);
  return out;
}

// What is checked, and how its kernels are run.
class Checking {
 public:
  explicit Checking(const CheckOptions& options)
      : options_(options),
        case_(load_case(options.file)),
        kernels_(select_kernels(options.selection)),
        absent_(drop_absent(kernels_)),
        laws_(select_laws(options.selection.laws)),
        context_(context_for(case_, lambda_for(0), options.launches)) {
    // The gate samples the rows of large problems; here is time for all of them, up to a whole layer.
    constexpr std::int64_t patience = 20000;
    const Shape& s = case_.shape;
    if (s.batch * s.q_heads * s.tq <= patience) context_.max_rows = patience;
    if (!isolates(options.isolation, kernels_)) return;
    pool_.emplace(1, options.isolation, [this](const std::string& request, const Announce&) { return serve(request); });
  }

  int run() {
    std::cout << options_.file << (case_.about.empty() ? "" : ": " + case_.about) << "\n" << absent_;
    bool any_failed = false, all_passed = true, any_kernel = false;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (std::none_of(laws_.begin(), laws_.end(), [&](const Law* law) { return binds(k, *law); })) continue;
      any_kernel = true;
      bool failed = false, passed = false;
      check_kernel(k, failed, passed);
      any_failed = any_failed || failed;
      all_passed = all_passed && passed;
    }
    if (!any_kernel) {
      std::cout << "INCOMPLETE  no selected kernel and law concern this case (operation, format, the case's own "
                   "globs)\n";
      return 3;
    }
    std::cout << (any_failed ? "FAIL" : all_passed ? "PASS" : "INCOMPLETE  a kernel has no PASS") << "\n";
    return any_failed ? 1 : all_passed ? 0 : 3;
  }

 private:
  bool binds(std::size_t k, const Law& law) const { return concerns(case_, kernels_[k].kernel, law); }

  // Checks and prints one kernel; adds its outcomes.
  void check_kernel(std::size_t k, bool& failed, bool& passed) {
    const Kernel& kernel = kernels_[k].kernel;
    hung_ = false;
    std::cout << kernel.name << "  (" << kernel.contract_name << ", " << kernel.origin << ")\n";
    for (std::size_t l = 0; l < laws_.size(); ++l) {
      const Law& law = *laws_[l];
      if (!binds(k, law) || hung_) continue;
      const CheckResult r = pool_ ? check_in_worker(k, l) : check_here(k, l);
      std::cout << text("  %-9s %-20s %lld elements, worst error/bound %.4g%s%s\n",
                        std::string(name(r.outcome)).c_str(), std::string(law.name).c_str(),
                        static_cast<long long>(r.elements), r.worst_ratio, r.reason.empty() ? "" : ": ",
                        r.reason.c_str());
      failed = failed || r.outcome == Outcome::fail;
      passed = passed || r.outcome == Outcome::pass;
      if (r.outcome != Outcome::fail) continue;
      std::cout << "    " << failure_line({&kernels_[k], &law}, {0, true, case_, r, options_.file, "", ""}) << "\n    "
                << law.statement << "\n";
    }
    std::cout << (pool_ ? explain_in_worker(k) : explain_here(k)) << std::flush;
  }

  // While it lives, a crash here leaves a line; of a worker the parent knows what is running.
  std::unique_ptr<CrashNote> note_unless_isolated(const Kernel& kernel, std::string_view law) const {
    if (pool_) return nullptr;
    return std::make_unique<CrashNote>(options_.file, "", kernel.name, std::string(law),
                                       plugin_flags(options_.selection));
  }

  CheckResult check_here(std::size_t k, std::size_t l) const {
    const Kernel& kernel = kernels_[k].kernel;
    const std::unique_ptr<CrashNote> note = note_unless_isolated(kernel, laws_[l]->name);
    return check_case(case_, kernel, *laws_[l], context_);
  }

  std::string explain_here(std::size_t k) const {
    const Kernel& kernel = kernels_[k].kernel;
    const std::unique_ptr<CrashNote> note = note_unless_isolated(kernel, "encloses");
    return elements_text(explain_case(case_, kernel, context_), std::string(name(formats_for(kernel).storage)),
                         options_.all);
  }

  // In both placements, as the gate uses one or the other; the one that fails counts.
  CheckResult check_in_worker(std::size_t k, std::size_t l) {
    CheckResult first;
    for (const Placement placement : {Placement::page_end, Placement::page_begin}) {
      const Reply reply = ask(k, l, placement);
      const CheckResult r = result_of(reply, [](RecordReader&) {});
      hung_ = reply.hung;
      if (r.outcome == Outcome::fail) return r;
      if (placement == Placement::page_end) first = r;
    }
    return first;
  }

  std::string explain_in_worker(std::size_t k) {
    if (hung_) return "  not explained: the kernel did not return\n";
    Reply reply;
    for (const Placement placement : {Placement::page_end, Placement::page_begin}) {
      reply = ask(k, laws_.size(), placement);
      if (reply.answered) return reply.answer;
    }
    return "  did not run: the kernel " + reply.ending + "\n";
  }

  Reply ask(std::size_t k, std::size_t l, Placement placement) {
    RecordWriter request;
    request << std::uint64_t{k} << std::uint64_t{l} << static_cast<std::uint64_t>(placement);
    std::optional<Job> job = Job{0, request.take(), options_.isolation.seconds};
    Reply reply;
    WorkerPool::Callbacks callbacks;
    callbacks.next = [&] { return std::exchange(job, std::nullopt); };
    callbacks.done = [&](std::size_t, const Reply& r) { reply = r; };
    // It ended after its answer: the answer is no longer worth much.
    callbacks.ended_idle = [&](std::size_t, const std::string& how) { reply.answered = false, reply.ending = how; };
    pool_->run(callbacks);
    return reply;
  }

  // In the worker. One past the last law stands for the explanation.
  std::string serve(const std::string& request) const {
    RecordReader in(request);
    const std::size_t k = in.number(), l = in.number();
    const auto placement = static_cast<Placement>(in.number());
    grant_memory(8 * problem_bytes(case_, formats_for(kernels_.at(k).kernel)));
    const PlacementScope scope(placement);
    if (l == laws_.size()) return explain_here(k);
    RecordWriter out;
    out << check_here(k, l);
    return out.take();
  }

  const CheckOptions& options_;
  const Case case_;
  std::vector<LoadedKernel> kernels_;
  const std::string absent_;  // lines about kernels that have no device here
  const std::vector<const Law*> laws_;
  LawContext context_;
  std::optional<WorkerPool> pool_;
  bool hung_ = false;  // this kernel, under some law: it has cost its time
};

}  // namespace

int run_check(const CheckOptions& options) {
  Checking checking(options);
  install_crash_notes(".");
  return checking.run();
}

}  // namespace attest
