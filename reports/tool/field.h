// Beside the field: the planted bugs under the pass criteria of other projects' attention tests, and under our laws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/field/broken.h"
#include "properties/field/run.h"
#include "properties/mutants/mutants.h"
#include "reports/tool/select.h"

namespace attest {

struct FieldOptions {
  std::vector<std::string> mutants;  // globs; empty: all
  std::uint64_t seed = 1;
  int seeds = 2;         // sets of values for each of the projects' tests
  int cases = 4;         // generated cases for every law, for the Attest column
  std::string corpus;    // directory; "none": no replay
  std::string json;      // path, "-" for standard output, or empty
  std::string markdown;  // path, or empty
  int jobs = 0;          // 0: one for each core
  bool quiet = false;
};

// One kernel: what each project's tests and our laws make of it.
struct FieldRow {
  LoadedKernel kernel;
  const mutants::Mutant* mutant = nullptr;  // nullptr: a control
  const Kernel* correct = nullptr;          // the control of the same Contract
  std::vector<field::Opinion> opinions;     // in the order of field::projects()
  std::string law, finding;                 // the first law that fails; "" if none does
  int checks = 0;                           // of laws, until then
};

struct FieldResult {
  std::vector<FieldRow> rows;                          // controls first
  std::vector<std::vector<field::Acceptance>> broken;  // by project, then field::broken_outputs()
  double seconds = 0;
};

// Prints one table mutant x project, and what the rules accept of outputs broken on purpose. Returns 0 when our laws
// kill every mutant and pass every control, else 1. Raises UsageError or CaseError.
int run_field(const FieldOptions& options);

// The same result for people, for machines and for the record.
std::string field_text(const FieldResult& result);
std::string field_json(const FieldResult& result, const FieldOptions& options);
std::string field_markdown(const FieldResult& result, const FieldOptions& options);

}  // namespace attest
