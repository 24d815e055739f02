// One GPU mutant or control, judged in this process: what the children of `attest mutants --device cuda` do.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "properties/check.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "reports/tool/mutants_device.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using mutants::DeviceBug;

struct OneKernel {
  Kernel kernel;
  DeviceBug bug;
  bool fits(const mutants::TargetedCase& t) const {
    return bug == t.bug || bug == DeviceBug::none;  // a control of another format has nothing to say to it: concerns()
  }
};

OneKernel find_one(const std::string& name) {
  for (Kernel& k : mutants::device_control_kernels())
    if (k.name == name) return {std::move(k), DeviceBug::none};
  std::vector<Kernel> all = mutants::device_mutant_kernels();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return {std::move(all[i]), mutants::device_table()[i].bug};
  throw UsageError("--one: no GPU mutant or control is named '" + name + "'");
}

void announce_check(const Law& law, const std::string& name) {
  std::cout << "@ " << law.name << "\t" << name << std::endl;
}

// A case under one law.
struct Given {
  std::string name;
  const Case* data;
  std::size_t law;
};

// Until the first kill.
void judge_given(KillRow& row, const Kernel& kernel, const std::vector<const Law*>& laws,
                 const std::vector<Given>& given, bool only_pass_is_good) {
  std::int64_t checks = 0;
  const std::clock_t begin = std::clock();
  for (const Given& g : given) {
    const Law& law = *laws[g.law];
    announce_check(law, g.name);
    const CheckResult r = check_case(*g.data, kernel, law, context_for(*g.data, lambda_for(0)));
    if (r.outcome == Outcome::rejected && !only_pass_is_good) continue;
    Cell& cell = row.cells[g.law];
    ++cell.checks, ++checks;
    if (only_pass_is_good ? r.outcome == Outcome::pass : r.outcome != Outcome::fail) continue;
    cell.killed = true;
    cell.killing_case = row.first_case = g.name;
    row.first_law = law.name;
    row.checks_to_kill = checks;
    row.seconds_to_kill = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    row.reason = describe(r);
    return;
  }
}

}  // namespace

int run_device_part(const MutantOptions& options, const std::vector<CorpusCase>& corpus) {
  const std::size_t colon = options.one.find(':');
  const std::string part = options.one.substr(0, colon);
  const std::vector<std::string> parts = {"laws", "kill", "corpus", "targeted", "launch"};
  if (colon == std::string::npos || std::find(parts.begin(), parts.end(), part) == parts.end())
    throw UsageError("--one " + options.one + ": need PART:NAME, PART one of laws, kill, corpus, targeted, launch");
  const OneKernel subject = find_one(options.one.substr(colon + 1));
  if (part == "launch") {
    const std::string fault = mutants::run_alone(subject.kernel, mutants::launch_case());
    if (!fault.empty()) std::cout << fault << std::endl;
    return fault.empty() ? 0 : 1;
  }
  const std::vector<const Law*> laws = select_laws(options.laws);
  const std::vector<CorpusCase> nothing;
  KillRow row = make_row(subject.kernel, nullptr, laws, part == "corpus" ? corpus : nothing, false);
  std::vector<Given> given;
  for (const auto& [c, law] : row.replay) given.push_back({c->name, &c->data, law});
  const std::vector<mutants::TargetedCase> targeted = mutants::targeted_cases();
  // Offsets past 2^31 elements take more than a case file may ask for.
  if (part == "targeted") setenv("ATTEST_CASE_GIB", "8", 1);
  if (part == "targeted")
    for (const mutants::TargetedCase& t : targeted)
      for (std::size_t l = 0; l < laws.size(); ++l)
        if (subject.fits(t) && laws[l]->name == t.law && concerns(t.data, subject.kernel, *laws[l]))
          given.push_back({t.name, &t.data, l});
  if (part == "laws" || part == "kill")
    judge_kernel(row, laws, options.cases, options.seeds.front(), lambda_for(0),
                 {announce_check, [&] { return part == "kill" || mutants::device_lost(); }});
  else  // a control has to pass what is aimed at a mutant
    judge_given(row, subject.kernel, laws, given, part == "targeted" && subject.bug == DeviceBug::none);
  std::cout << written_row(row, laws) << std::endl;
  return 0;
}

}  // namespace attest
