// What laws are written with: running a case, freezing its values, and comparing two runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "properties/evaluate.h"
#include "properties/generate.h"
#include "properties/shapes.h"

namespace attest {

// ---- when a law binds ----

// "" if the kernel has this operation and takes the case's format, else why not.
std::string why_not_any(const Case& c, const Kernel& kernel);
std::string why_not_forward(const Case& c, const Kernel& kernel);
std::string why_not_step(const Case& c, const Kernel& kernel);
std::string why_not_merge(const Case& c, const Kernel& kernel);

inline bool promises(const Kernel& kernel, std::uint64_t promise) {
  return (kernel.abi->contract.promises & promise) == promise;
}

// ---- cases ----

// The same numbers as literals: tensors hold what the kernel would be given, masks what they let through. Values and
// masks then stay put when a law changes the tiling or cuts the shape, on which recipes may depend.
Case frozen(const Case& c, const Kernel& kernel);

// Choices inside a law. They follow from the case as well as the context: other cases get other tilings, permutations
// and places, and a case checked again by itself gets the same ones. tag tells laws apart.
Random choices(const LawContext& context, const Case& c, std::uint64_t tag);

// Another kernel of the same origin with this operation and the same formats; nullptr if there is none.
const attn_kernel* sibling(const Kernel& kernel, std::int32_t op, std::int32_t algorithm = 0);
Kernel as_kernel(const attn_kernel* abi, const Kernel& like);

// Plain shapes of which there is something to say.
void at_least(std::int64_t& n, std::int64_t least, Random& random, std::int64_t spread = 3);
void nothing_to_shape(Case& c, Random& random);

// ---- runs ----

struct Run {
  Problem problem;
  Execution execution;
  bool ok() const { return execution.status == Outcome::pass; }
};
Run run_case(const Kernel& kernel, const Case& c, const ProblemOptions& options = {});
// For what is done to inputs between making the problem and running it.
Run run_with(const Kernel& kernel, const Case& c, const std::function<void(Problem&)>& change,
             const ProblemOptions& options = {});

// ---- comparisons ----

// Names of the outputs that this problem has: "o", "lse" or "m", "l", "acc".
std::vector<std::string> outputs_of(const Problem& p);

// Every output of the two runs, bit for bit. label says what differed between the runs.
void same_bits(Tally& tally, const Problem& a, const Problem& b, const std::string& label);

// Rows of a that must agree with rows of b.
struct RowPair {
  RowIndex a, b;
};
std::vector<RowPair> all_rows(const Problem& p);

// Bit for bit where bitwise is true; otherwise |a - b| within the sum of both bounds. Forward problems.
void same_rows(Tally& tally, const Kernel& kernel, const Problem& a, const Problem& b, const std::vector<RowPair>& rows,
               bool bitwise, const std::string& label);

// The comparison of all outputs of two runs on the same values: bits where promised, else both against the truth.
void agree_runs(Tally& tally, const Kernel& kernel, const Problem& a, const Problem& b, bool bitwise,
                const LawContext& context, const std::string& label);

// |got_a - got_b - shift| <= bound_a + bound_b, by class where one is not finite.
void within_both(Tally& tally, double got_a, double bound_a, double got_b, double bound_b, double shift,
                 const std::function<std::string()>& where);

}  // namespace attest
