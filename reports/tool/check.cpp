#include "reports/tool/check.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/gate.h"
#include "reports/tool/text.h"

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

void print_element(const ElementReport& e) {
  std::string verdict(name(e.judgement.verdict));
  std::cout << text("    %-9s %s\n", verdict.c_str(), e.where.c_str())
            << (std::isnan(e.got) ? "      got    nan\n" : text("      got    %a (%.17g)\n", e.got, e.got))
            << "      truth  " << truth_text(e.truth) << ", " << e.tier << "\n"
            << text("      error  %.4g, bound %.4g (%.4g before output rounding), error/bound %.4g%s\n",
                    e.judgement.error, e.bound.deterministic, e.bound.before_rounding, e.judgement.ratio,
                    e.bound.ill_conditioned ? ", ill-conditioned" : "");
}

void print_elements(const CaseReport& report, const std::string& format, bool all) {
  if (report.status.status != Outcome::pass) {
    std::cout << "  did not run: " << name(report.status.status) << ": " << report.status.reason << "\n";
    return;
  }
  std::cout << text("  rows judged: %lld of %lld\n", static_cast<long long>(report.rows_judged),
                    static_cast<long long>(report.rows));
  if (report.inputs_rounded)
    std::cout << "  expected: not compared for " << format << ", the case's inputs are not exact in this format\n";
  const std::size_t n = report.elements.size(), shown = all ? n : std::min<std::size_t>(n, 10);
  std::cout << text("  output elements, worst first (%zu of %zu%s):\n", shown, n, shown < n ? "; --all for all" : "");
  for (std::size_t i = 0; i < shown; ++i) print_element(report.elements[i]);
}

// Checks and prints one kernel; adds its outcomes.
void check_kernel(const Case& c, const Kernel& kernel, const std::vector<const Law*>& laws, const CheckOptions& o,
                  bool& failed, bool& passed) {
  std::cout << kernel.name << "  (" << kernel.contract_name << ", " << kernel.origin << ")\n";
  LawContext context = context_for(c, lambda_for(0));
  // The gate samples the rows of large problems; here is time for all of them, up to a whole layer.
  constexpr std::int64_t patience = 20000;
  if (c.shape.batch * c.shape.q_heads * c.shape.tq <= patience) context.max_rows = patience;
  for (const Law* law : laws) {
    if (!concerns(c, kernel, *law)) continue;
    CheckResult r;
    {
      const CrashNote note(o.file, "", kernel.name, std::string(law->name), plugin_flags(o.selection));
      r = check_case(c, kernel, *law, context);
    }
    std::cout << text("  %-9s %-20s %lld elements, worst error/bound %.4g%s%s\n", std::string(name(r.outcome)).c_str(),
                      std::string(law->name).c_str(), static_cast<long long>(r.elements), r.worst_ratio,
                      r.reason.empty() ? "" : ": ", r.reason.c_str());
    failed = failed || r.outcome == Outcome::fail;
    passed = passed || r.outcome == Outcome::pass;
    if (r.outcome != Outcome::fail) continue;
    const LoadedKernel loaded{kernel, false, ""};
    std::cout << "    " << failure_line({&loaded, law}, {0, true, c, r, o.file, "", ""}) << "\n    " << law->statement
              << "\n";
  }
  const CrashNote note(o.file, "", kernel.name, "encloses", plugin_flags(o.selection));
  print_elements(explain_case(c, kernel, context), std::string(name(formats_for(kernel).storage)), o.all);
}

}  // namespace

int run_check(const CheckOptions& o) {
  const Case c = load_case(o.file);
  const std::vector<LoadedKernel> kernels = select_kernels(o.selection);
  const std::vector<const Law*> laws = select_laws(o.selection.laws);
  install_crash_notes(".");
  std::cout << o.file << (c.about.empty() ? "" : ": " + c.about) << "\n";
  bool any_failed = false, all_passed = true, any_kernel = false;
  for (const LoadedKernel& k : kernels) {
    const auto bound = [&](const Law* law) { return concerns(c, k.kernel, *law); };
    if (std::none_of(laws.begin(), laws.end(), bound)) continue;
    any_kernel = true;
    bool failed = false, passed = false;
    check_kernel(c, k.kernel, laws, o, failed, passed);
    any_failed = any_failed || failed;
    all_passed = all_passed && passed;
  }
  if (!any_kernel) {
    std::cout << "INCOMPLETE  no selected kernel and law concern this case (operation, format, the case's own globs)\n";
    return 3;
  }
  std::cout << (any_failed ? "FAIL" : all_passed ? "PASS" : "INCOMPLETE  a kernel has no PASS") << "\n";
  return any_failed ? 1 : all_passed ? 0 : 3;
}

}  // namespace attest
