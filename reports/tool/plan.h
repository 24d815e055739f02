// What a gate will check, before it checks anything: kernel x law pairs, and for each its generated cases and the
// corpus cases that concern it. The plan depends on the options alone, never on the number of jobs or on the clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/tool/isolation.h"
#include "reports/tool/select.h"

namespace attest {

struct GateOptions {
  Selection selection;
  std::uint64_t seed = 1;
  double seconds = 0;                             // 0: no cap
  std::int64_t launches = LawContext().launches;  // of the law `deterministic`
  int cases = 24;                                 // generated for every kernel and law
  int shard = 1, shards = 1;
  std::string junit, json;                  // paths; json may be "-"
  std::vector<std::string> require;         // globs or families: each needs a kernel, and each of those a PASS
  std::vector<std::string> require_preset;  // the only Contracts that kernels may have (plugins', if there are plugins)
  std::string corpus;                       // directory; "none": no replay
  std::string waivers;                      // path, or empty
  std::string out = "attest-failures";
  int jobs = 0;  // 0: one for each core
  bool quiet = false;
  IsolationOptions isolation;
};

struct Pair {
  const LoadedKernel* kernel;
  const Law* law;
};

struct CorpusCase {
  std::string path;  // for commands: relative to the working directory where it lies below it
  std::string name;  // for reports: relative to the corpus
  Case data;
};

// One check: a pair with its generated case of that index (index >= 0) or corpus case (-1 - index).
struct Unit {
  std::uint32_t pair;
  std::int32_t index;
};

struct Plan {
  std::vector<LoadedKernel> kernels;
  std::vector<const Law*> laws;
  std::vector<CorpusCase> corpus;
  std::vector<Pair> pairs;   // of this shard, kernel-major; last those whose kernel has no device here
  std::size_t active = 0;    // pairs that are checked; the others count one NOT_RUN each
  std::vector<Unit> replay;  // corpus cases, each with every pair that it concerns
  int cases = 0;             // generated for each pair
  double lambda = 0;         // of the law `expected`, over the whole run
  std::int64_t launches = LawContext().launches;

  // Checks in the order in which they start: index by index over all pairs, so that a run that is cut short has seen a
  // little of everything, with the corpus after the first round. Computed, not stored: a budget may be in the billions.
  std::size_t size() const { return replay.size() + active * static_cast<std::size_t>(cases); }
  Unit unit(std::size_t order) const;
};

// Raises UsageError, PluginError or CaseError.
Plan make_plan(const GateOptions& options);

// The case of a generated unit: a function of seed, kernel, law and index alone.
Case generated_case(const Kernel& kernel, const Law& law, std::uint64_t seed, int index);

// What a law is told about one check: a function of the case, so that `gate` and `check` ask the same question.
LawContext context_for(const Case& c, double lambda, std::int64_t launches = LawContext().launches);

// lambda at which one false alarm in a million runs is expected when a run judges so many outputs; at least 1e9 are
// assumed, so that a short run and `check` use the same lambda.
double lambda_for(double outputs);

// Whether a corpus case is about this kernel and law: operation, format, the case's own globs, the law's own rule.
bool concerns(const Case& c, const Kernel& kernel, const Law& law);

// Every *.case below a directory, sorted by path. Raises CaseError for a bad one.
std::vector<CorpusCase> load_corpus(const std::string& directory);

}  // namespace attest
