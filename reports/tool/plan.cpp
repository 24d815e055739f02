#include "reports/tool/plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "oracle/bound.h"
#include "properties/check.h"
#include "properties/device.h"
#include "properties/execute.h"
#include "properties/generate.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

bool same_operation(Op op, std::int32_t kernel_op) {
  return (op == Op::forward && kernel_op == ATTN_OP_FORWARD) || (op == Op::step && kernel_op == ATTN_OP_STEP) ||
         (op == Op::merge && kernel_op == ATTN_OP_MERGE);
}

// What states a step or merge kernel holds, only its supports() says. One that declines the smallest problem of a kind
// is not what a case of that kind is about; one that declines every kind still meets the generated cases.
bool takes_state(const Kernel& kernel, const Case& c) {
  if (c.op == Op::forward) return true;
  static std::map<std::pair<const attn_kernel*, StateKind>, bool> known;
  const auto [at, fresh] = known.try_emplace({kernel.abi, c.state}, false);
  if (!fresh) return at->second;
  Case smallest;
  smallest.op = c.op;
  smallest.state = c.state;
  const Problem problem(smallest, formats_for(kernel));
  char why[256] = "";
  at->second = kernel.abi->supports(&problem.abi(), why, sizeof why) != ATTN_REJECTED;
  return at->second;
}

// An index is always given the same share of the largest shapes, whatever the budget: the golden ratio spreads any
// number of them evenly, and index 0 is the smallest.
double size_of(int index) {
  const double x = index * 0.6180339887498949;
  return x - std::floor(x);
}

}  // namespace

Case generated_case(const Kernel& kernel, const Law& law, std::uint64_t seed, int index) {
  const std::string name = kernel.name + "\n" + std::string(law.name) + "\n" + std::to_string(index);
  Random random(seed, fnv(name));
  return generate_case(kernel, law, random, size_of(index));
}

double lambda_for(double outputs) { return std::sqrt(2 * std::log(2 * std::max(outputs, 1e9) / 1e-6)); }

LawContext context_for(const Case& c, double lambda, std::int64_t launches) {
  LawContext context;
  context.launches = launches;
  context.seed = c.values.seed;
  context.lambda = lambda;
  return context;
}

bool concerns(const Case& c, const Kernel& kernel, const Law& law) {
  if (!same_operation(c.op, kernel.abi->op) || !takes_state(kernel, c)) return false;
  const Formats formats = formats_for(kernel);
  const bool format =
      c.dtype == DType::any || c.dtype == formats.storage || (c.op == Op::merge && c.dtype == formats.accumulator);
  return format && meant_for(c, kernel.name, law.name) && law.why_not(c, kernel).empty();
}

std::vector<CorpusCase> load_corpus(const std::string& directory) {
  if (!fs::is_directory(directory)) throw UsageError(directory + ": not a directory of .case files");
  std::vector<std::string> paths;
  for (auto at = fs::recursive_directory_iterator(directory); at != fs::recursive_directory_iterator(); ++at) {
    // Seconds or gigabytes a case: only for who names the folder itself.
    if (at->is_directory() && (at->path().filename() == "large" || at->path().filename() == "tiles"))
      at.disable_recursion_pending();
    if (at->is_regular_file() && at->path().extension() == ".case") paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<CorpusCase> out;
  for (const std::string& path : paths) {
    const std::string near = fs::proximate(path).string();
    const std::string shown = near.starts_with("..") ? path : near;
    out.push_back({shown, fs::relative(path, directory).string(), load_case(shown)});
  }
  return out;
}

Unit Plan::unit(std::size_t order) const {
  const std::size_t first_round = cases > 0 ? active : 0;
  if (order >= first_round && order < first_round + replay.size()) return replay[order - first_round];
  if (order >= first_round) order -= replay.size();
  return {static_cast<std::uint32_t>(order % active), static_cast<std::int32_t>(order / active)};
}

Plan make_plan(const GateOptions& o) {
  Plan plan;
  plan.kernels = select_kernels(o.selection);
  plan.laws = select_laws(o.selection.laws);
  if (!o.corpus.empty() && o.corpus != "none") plan.corpus = load_corpus(o.corpus);

  // Whole pairs go to a shard, so that "every pair has a PASS" is decided inside one.
  std::size_t number = 0;
  for (const LoadedKernel& k : plan.kernels)
    for (const Law* law : plan.laws)
      if (number++ % static_cast<std::size_t>(o.shards) == static_cast<std::size_t>(o.shard - 1))
        plan.pairs.push_back({&k, law});
  const auto present = [](const Pair& p) { return !why_no_device(p.kernel->kernel.abi->device); };
  plan.active = static_cast<std::size_t>(std::stable_partition(plan.pairs.begin(), plan.pairs.end(), present) -
                                         plan.pairs.begin());

  for (std::size_t i = 0; i < plan.corpus.size(); ++i)
    for (std::uint32_t p = 0; p < plan.active; ++p)
      if (concerns(plan.corpus[i].data, plan.pairs[p].kernel->kernel, *plan.pairs[p].law))
        plan.replay.push_back({p, -1 - static_cast<std::int32_t>(i)});
  plan.cases = o.cases;
  plan.launches = o.launches;
  // At most 256 rows of 256 columns are judged in one check. Counted over all shards: the same lambda in each.
  plan.lambda = lambda_for(65536.0 * static_cast<double>(number) * (o.cases + static_cast<double>(plan.corpus.size())));
  return plan;
}

}  // namespace attest
