// What other projects' attention tests would say of a kernel: their own configurations, their own inputs, their own
// reference, their own pass rule. Facts about the projects were read from the files that `source` cites; no code of
// theirs is here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/case.h"
#include "properties/law.h"

namespace attest::field {

// Results as a comparator sees them: O in logical row-major order, rounded as it is stored, and the natural-log LSE.
struct Outputs {
  std::vector<double> o, lse;
};

// Where a reference rounds; sums are taken in double in between, which is never worse than what the project does.
// DType::any stands for the format of the inputs.
struct Arithmetic {
  enum class Scale { scores, q, k };  // what is multiplied by the scale, and rounded to `scores` where it is q or k
  DType scores = DType::fp32, weights = DType::fp32, output = DType::fp32;
  Scale scale = Scale::scores;
  bool normalised_weights = true;  // false: exp(s - m) is rounded to `weights`, the division comes last
};

// What a project compares with.
struct Reference {
  Outputs want;
  std::vector<double> unfused;    // O of the same maths in the kernel's own format, for rules that measure by it
  std::vector<double> magnitude;  // sum of p |v| per element of O
};

struct Subject {
  Outputs got;
  const Reference& reference;
  DType format = DType::fp32;  // of q, k, v and, in tests of 16-bit kernels, of O
  std::int64_t keys = 0;
};

// Whether the project's test passes.
using Rule = std::function<bool(const Subject&)>;

// Lays q, k, v of the case, as the project draws them.
using Fill = std::function<void(Case&, std::uint64_t seed)>;

// One configuration of a project's forward tests.
struct Test {
  Case problem;
  Fill fill;
  Rule rule;               // empty: the project's
  int runs = 1;            // on the same inputs; every one is judged
  bool same_bits = false;  // and all runs must give the same bits
  bool lse = true;         // asked for
  std::int64_t alone = 0;  // > 0: the first so many batch entries alone must give the same bits
};

// One configuration of a project's tests of merging two partial results (O, LSE).
struct MergeTest {
  std::int64_t rows = 0, d_v = 0;
  DType partials = DType::fp32, out = DType::fp32;  // formats of O that go in and come out
  double empty_a = 0, empty_b = 0;                  // share of rows where that part is empty (LSE -inf), never both
  Rule rule;
};

struct Project {
  std::string_view name, column;  // of the table: at most 6 characters
  std::string_view source;        // files and commit that were read
  std::string_view inputs, reference_text, rule_text, blind;
  Arithmetic want, unfused;
  Rule rule;
  bool reference_after = false;  // computed from the inputs as the kernel left them
  bool sees_margins = false;     // looks for writes outside of the outputs
  std::uint8_t stale = 0x3F;     // bytes under the outputs before the run: finite values of about 1, or NaN
  std::uint8_t margin = 0x3F;    // bytes around the inputs and in their padding
  std::vector<Test> tests;
  std::vector<MergeTest> merges;
};

// Every project, in the order of the table's columns.
std::span<const Project> projects();
const Project& project(std::string_view name);  // std::out_of_range if there is none

}  // namespace attest::field
