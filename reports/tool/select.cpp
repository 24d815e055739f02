#include "reports/tool/select.h"

#include <algorithm>
#include <map>

#include "properties/check.h"
#include "properties/device.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "properties/mutants/mutants.h"
#include "properties/variants/variants.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::string hash_of(const attn_contract& c) {
  std::string all;
  for (const ContractField& f : contract_fields(c)) all += std::string(f.name) + "=" + f.value + "\n";
  return hex(fnv(all + "promises=" + std::to_string(c.promises)));
}

// A glob that selects nothing is a typing error, not an empty and therefore green run.
template <class Names>
void refuse_idle_globs(const std::vector<std::string>& globs, const Names& names, const char* what, const char* list) {
  for (const std::string& g : globs)
    if (std::none_of(names.begin(), names.end(), [&](const auto& n) { return glob_match(g, n); }))
      throw UsageError("no " + std::string(what) + " matches '" + g + "'; `" + tool_command() + " " + list +
                       "` lists them");
}

}  // namespace

std::vector<LoadedKernel> select_kernels(const Selection& selection) {
  std::vector<LoadedKernel> all;
  for (Kernel& k : built_in_kernels()) all.push_back({std::move(k), false, ""});
  if (selection.variants)
    for (Kernel& k : variants::variant_kernels()) all.push_back({std::move(k), false, ""});
  // Mutants have to be meant: those that a search was turned on leave cases, too.
  if (std::any_of(selection.kernels.begin(), selection.kernels.end(),
                  [](const std::string& glob) { return glob.starts_with("mutant."); })) {
    for (Kernel& k : mutants::mutant_kernels()) all.push_back({std::move(k), false, ""});
    for (Kernel& k : mutants::device_mutant_kernels()) all.push_back({std::move(k), false, ""});
  }
  for (const std::string& path : selection.plugins)
    for (Kernel& k : load_plugin(path).kernels) all.push_back({std::move(k), true, ""});

  std::map<std::string, std::string> origin;
  std::vector<std::string> names;
  for (const LoadedKernel& k : all) {
    const auto [at, fresh] = origin.emplace(k.kernel.name, k.kernel.origin);
    if (!fresh)
      throw UsageError(k.kernel.origin + ": kernel name " + k.kernel.name + " is taken by " + at->second +
                       ", need another name");
    names.push_back(k.kernel.name);
  }
  refuse_idle_globs(selection.kernels, names, "kernel", "kernels");

  std::vector<LoadedKernel> chosen;
  for (LoadedKernel& k : all) {
    const bool by_default = selection.plugins.empty() || selection.variants || k.from_plugin;
    const bool wanted = selection.kernels.empty() ? by_default : matches_any(selection.kernels, k.kernel.name);
    const bool on_cpu = k.kernel.abi->device == ATTN_DEVICE_CPU;
    const bool here = selection.device == "all" || (selection.device == "cpu") == on_cpu;
    if (!wanted || !here) continue;
    k.contract_hash = hash_of(k.kernel.abi->contract);
    chosen.push_back(std::move(k));
  }
  if (chosen.empty() && selection.device != "all")
    throw UsageError("no selected kernel is for --device " + selection.device + "; `" + tool_command() +
                     " kernels` lists them");
  return chosen;
}

std::string not_run_line(const std::vector<std::string>& kernels, const std::string& reason) {
  return "NOT_RUN " + kernels.front() +
         (kernels.size() > 1 ? " to " + kernels.back() + " (" + std::to_string(kernels.size()) + " kernels)" : "") +
         ": " + reason + "\n";
}

std::string drop_absent(std::vector<LoadedKernel>& kernels) {
  std::map<std::string, std::vector<std::string>> absent;
  std::erase_if(kernels, [&](const LoadedKernel& k) {
    const auto missing = k.from_plugin ? std::nullopt : why_no_device(k.kernel.abi->device);
    if (missing) absent[*missing].push_back(k.kernel.name);
    return missing.has_value();
  });
  std::string lines;
  for (const auto& [reason, names] : absent) lines += not_run_line(names, reason);
  return lines;
}

std::vector<const Law*> select_laws(const std::vector<std::string>& globs) {
  std::vector<std::string_view> names;
  for (const Law& law : laws()) names.push_back(law.name);
  refuse_idle_globs(globs, names, "law", "laws");
  std::vector<const Law*> chosen;
  for (const Law& law : laws())
    if (matches_any(globs, law.name)) chosen.push_back(&law);
  return chosen;
}

bool requirement_matches(const std::string& requirement, const std::string& kernel) {
  if (glob_match(requirement, kernel)) return true;
  return requirement.find_first_of("*?.") == std::string::npos && glob_match(requirement + ".*", kernel);
}

}  // namespace attest
