#include "properties/check.h"

#include <cstdio>
#include <exception>
#include <filesystem>

#include "impl/registry.h"
#include "properties/device.h"
#include "properties/evaluate.h"
#include "properties/generate.h"

namespace attest {
namespace {

CheckResult failure(std::string reason) { return stopped({Outcome::fail, std::move(reason), 0}); }

CheckResult check_unrecorded(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context) {
  try {
    if (std::string why = law.why_not(c, kernel); !why.empty())
      return stopped({Outcome::not_run, "the law does not apply: " + why, 0});
    if (auto missing = why_no_device(kernel.abi->device)) return stopped({Outcome::not_run, std::move(*missing), 0});
    return law.check(c, kernel, context);
  } catch (const std::exception& e) {
    return failure(std::string("the check ended with: ") + e.what());
  } catch (...) {
    return failure("the check ended with an exception of unknown type");
  }
}

bool still_fails(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context) {
  try {
    validate(c, "shrinking");
  } catch (const CaseError&) {
    return false;
  }
  return check_unrecorded(c, kernel, law, context).outcome == Outcome::fail;
}

std::string number(double x) {
  char text[96];
  std::snprintf(text, sizeof text, "%.9g (%a)", x, x);
  return text;
}

}  // namespace

CheckResult check_case(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context,
                       const std::string& record) {
  if (record.empty()) return check_unrecorded(c, kernel, law, context);
  try {
    // First on disk, then into the kernel: a crash leaves the case that made it.
    save_case(c, record);
  } catch (const std::exception& e) {
    return failure("the case cannot be recorded at " + record + ": " + e.what());
  }
  CheckResult r = check_unrecorded(c, kernel, law, context);
  std::error_code ignored;
  if (r.outcome != Outcome::fail) std::filesystem::remove(record, ignored);
  return r;
}

Case shrink_failure(const Case& c, const Kernel& kernel, const Law& law, const LawContext& context, int max_checks) {
  Case best = c;
  bool progress = true;
  for (int checks = 0; progress && checks < max_checks;) {
    progress = false;
    for (const Case& simpler : shrink_case(best)) {
      if (++checks > max_checks) break;
      if (!still_fails(simpler, kernel, law, context)) continue;
      best = simpler;
      progress = true;
      break;
    }
  }
  return best;
}

std::vector<Kernel> built_in_kernels() {
  std::vector<Kernel> out;
  for (const std::span<const attn_kernel> table : {attn::cpu_kernels(), attn::cuda_kernels()}) {
    std::vector<const attn_kernel*> siblings;  // of the same device
    for (const attn_kernel& k : table) siblings.push_back(&k);
    for (const attn_kernel* k : siblings)
      out.push_back({k, k->name, "built-in", k->contract.preset ? k->contract.preset : "custom", siblings});
  }
  return out;
}

std::vector<Kernel> runnable_kernels() {
  std::vector<Kernel> all = built_in_kernels();
  std::erase_if(all, [](const Kernel& k) { return why_no_device(k.abi->device).has_value(); });
  return all;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  // Greedy with one point of return: linear for the patterns that people write.
  std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool meant_for(const Case& c, std::string_view kernel, std::string_view law) {
  const auto any = [](const std::vector<std::string>& globs, std::string_view name) {
    if (globs.empty()) return true;
    for (const auto& g : globs)
      if (glob_match(g, name)) return true;
    return false;
  };
  return any(c.kernels, kernel) && any(c.laws, law);
}

std::string describe(const CheckResult& r) {
  std::string s(name(r.outcome));
  if (r.outcome != Outcome::fail) return r.reason.empty() ? s : s + ": " + r.reason;
  const Finding& f = r.finding;
  if (!f.where.empty()) {
    s += " at " + f.where + ": got " + number(f.got) + ", want " + number(f.want);
    if (f.bound > 0) s += ", error " + number(f.error) + ", bound " + number(f.bound);
  }
  const std::string& message = f.message.empty() ? r.reason : f.message;
  if (!message.empty()) s += ": " + message;
  return s;
}

}  // namespace attest
