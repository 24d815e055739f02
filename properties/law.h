// A law: one sentence that must hold, stated once and run by every driver (RapidCheck, fuzzer, corpus replay, tool).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/attention.h"
#include "oracle/case.h"
#include "oracle/verdict.h"

namespace attest {

// A kernel as the harness sees it.
struct Kernel {
  const attn_kernel* abi = nullptr;
  std::string name;
  std::string origin;                        // "built-in" or the plugin's path
  std::string contract_name;                 // preset name, or "custom, k times looser than PRESET"
  std::vector<const attn_kernel*> siblings;  // kernels of the same origin, for laws that compare operations
};

// Where a check failed: enough for one line. The reproduction command is added by the driver.
struct Finding {
  std::string where;  // "o[b=0,h=1,i=3,e=2]"
  double got = 0, want = 0, error = 0, bound = 0;
  std::string message;  // one line for findings that are not about one number
};

// What one check found.
struct CheckResult {
  Outcome outcome = Outcome::pass;
  std::string reason;      // why rejected, not run, undecided or vacuous
  Finding finding;         // the worst failure
  double worst_ratio = 0;  // largest error/bound over finite judgements
  double worst_o = 0;      // that of O alone, where the truth judged it
  std::int64_t elements = 0, vacuous_elements = 0, undecided_elements = 0;
};

struct LawContext {
  std::int64_t max_rows = 256;  // rows judged per problem; the rest are sampled at edges and at random, and counted
  std::uint64_t seed = 0;       // for choices inside a law (trees, permutations, sampled rows)
  std::int64_t launches = 4;    // repetitions that the law `deterministic` compares with the first run
  double lambda = 8;            // of the law `expected`: sqrt(2 ln(2 M / p)) over the run
};

struct Law {
  std::string_view name;
  std::string_view statement;  // one sentence
  // "" if the law binds this kernel on this case, else why not.
  std::string (*why_not)(const Case& c, const Kernel& kernel);
  CheckResult (*check)(const Case& c, const Kernel& kernel, const LawContext& context);
  // Shapes a plain case so that the law has something to say (adds a masked row, keys beyond kv_len, ...).
  void (*shape_case)(Case& c, class Random& random);
  bool searched_inputs = true;  // may judge inputs found by search; false for the statistical laws
};

// Every law, in a fixed order: an explicit table.
std::span<const Law> laws();
const Law* find_law(std::string_view name);

}  // namespace attest
