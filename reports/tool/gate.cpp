#include "reports/tool/gate.h"

#include <iostream>

#include "properties/check.h"
#include "reports/tool/crash.h"
#include "reports/tool/output.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

// `--require-contract`: no kernel may be judged by a laxer promise than the one the caller knows.
void require_presets(const Plan& plan, const GateOptions& options) {
  if (options.require_preset.empty()) return;
  for (const LoadedKernel& k : plan.kernels) {
    if (!options.selection.plugins.empty() && !k.from_plugin) continue;
    if (!matches_any(options.require_preset, k.kernel.contract_name))
      throw UsageError("kernel " + k.kernel.name + " (" + k.kernel.origin + "): Contract is \"" +
                       k.kernel.contract_name + "\", but --require-contract asks for " +
                       options.require_preset.front());
  }
}

// The gate between its first and its last word; `judged` once there is a verdict. Raises UsageError, PluginError or
// CaseError.
int judge_all(const GateOptions& options, bool& judged) {
  std::vector<Waiver> ledger;
  if (!options.waivers.empty()) ledger = load_waivers(options.waivers);
  const Plan plan = make_plan(options);
  require_presets(plan, options);
  const OutDirectory out(options.out);
  install_crash_notes(options.out);
  const GateResult result = judge(options, plan, ledger);
  judged = true;
  // With the JSON on standard output, people read on standard error. Text first: a report that cannot be written does
  // not take the verdict along.
  (options.json == "-" ? std::cerr : std::cout) << gate_text(plan, options, result) << std::flush;
  if (!options.json.empty()) write_whole(options.json, gate_json(plan, options, result, false));
  if (!options.junit.empty()) write_whole(options.junit, gate_junit(plan, result));
  return result.exit_code();
}

}  // namespace

std::string plugin_flags(const Selection& selection) {
  std::string flags = selection.variants ? " --variants" : "";
  for (const std::string& p : selection.plugins) flags += " --plugin " + shell_quoted(p);
  return flags;
}

int run_gate(const GateOptions& options) {
  begin_reports(options);
  bool judged = false;
  try {
    return judge_all(options, judged);
  } catch (const std::exception& e) {
    if (!judged) write_partial(options, error_json(e.what()));
    throw;
  }
}

}  // namespace attest
