// Errors of many outputs as one number: what the law `unbiased` judges and its calibration measures.
#pragma once

#include <cstdint>
#include <functional>

#include "properties/execute.h"
#include "properties/law.h"

namespace attest {

inline constexpr std::int64_t kPooledOutputs = 2000;  // fewest outputs of which z says something
inline constexpr int kPooledProblems = 96;            // most problems that are pooled to get there

struct Pooled {
  Execution execution;            // of the last problem; nothing follows from the sums unless it passed
  double squares = 0;             // sum of (error / expected standard deviation)^2
  std::int64_t outputs = 0;       // that it is a sum of
  std::int64_t rows_without = 0;  // rows for which no expected tier is derived

  bool enough() const { return outputs >= kPooledOutputs; }
  double z() const;  // root mean square; 1 if errors were uniform over the whole of their expected range
};

// Runs the case's shape at its seed and the seeds that follow, until there are enough outputs or problems. Rows with
// one visible key are left out: there O is V, exactly. visit, if given, sees the error and the bound of each output
// pooled.
Pooled pool_outputs(const Case& c, const Kernel& kernel, const LawContext& context,
                    const std::function<void(double error, const ElementBound&)>& visit = nullptr);

}  // namespace attest
