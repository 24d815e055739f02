#include "fuzz/case_target.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "fuzz/case_coverage.h"
#include "fuzz/counters.h"
#include "fuzz/target.h"
#include "properties/check.h"
#include "properties/generate.h"
#include "properties/shapes.h"

namespace attest::fuzz {
namespace {

// As `attest check` chooses it, so that the saved case shows there what it showed here.
LawContext context_of(const Case& c, std::int64_t rows) {
  LawContext context;
  context.seed = c.values.seed;
  context.max_rows = rows;
  return context;
}

// Edges of tiles first, then a random rest: more inputs a second matter more than more rows.
constexpr std::int64_t kRows = 12;

// A law about another operation sets what this one does not have.
void drop_foreign(Case& c, const Case& before) {
  if (c.op == Op::forward) {
    c.shape.parts = before.shape.parts;
    return;
  }
  c.shape.batch = c.shape.q_heads = c.shape.kv_heads = c.shape.d_qk = 1;
  c.out = before.out, c.scale = before.scale;
  c.mask = {};
  if (c.op == Op::merge) c.shape.tk = 1;
}

std::size_t index_of(const Law& law) { return static_cast<std::size_t>(&law - laws().data()); }

}  // namespace

CaseTarget::CaseTarget(std::string name, std::vector<Subject> subjects)
    : name_(std::move(name)), folder_("."), record_(false), subjects_(std::move(subjects)), worst_(subjects_.size()) {
  if (const char* folder = std::getenv("ATTEST_FUZZ_CASES")) folder_ = folder;
  // A crash inside a kernel leaves libFuzzer's bytes; replayed with this set they leave a .case as well. Not while
  // fuzzing: the atomic write would cost more than the check.
  record_ = std::getenv("ATTEST_FUZZ_RECORD") != nullptr;
}

std::string CaseTarget::path_of(const Case& c) const { return folder_ + "/" + name_ + "-" + case_hash(c) + ".case"; }

void CaseTarget::report(Case c, const Subject& subject, const Law& law, const CheckResult& result) const {
  // The engine goes on after this crash and keeps the bytes of it: a case for every one would fill the disk.
  if (folder_.empty()) std::abort();
  c.about = "found by fuzz_" + name_;
  const std::string path = path_of(c), kernel = subject.kernel.name, law_name(law.name);
  save_case(c, path);
  std::fprintf(stderr, "attest-finding: %s %s %s %s\n", path.c_str(), kernel.c_str(), law_name.c_str(),
               describe(result).c_str());
  std::fprintf(stderr, "reproduce: attest check %s --kernels %s --laws %s\n", path.c_str(), kernel.c_str(),
               law_name.c_str());
  std::abort();
}

void CaseTarget::check(const Case& c, std::size_t n, const Law& law) {
  const Subject& subject = subjects_[n];
  if (!law.why_not(c, subject.kernel).empty()) return;
  const CheckResult result =
      check_case(c, subject.kernel, law, context_of(c, kRows), record_ ? path_of(c) : std::string());
  if (result.outcome == Outcome::fail) report(c, subject, law, result);
  if (result.outcome == Outcome::pass) ++tally.accepted;
  met(Situation::outcome, static_cast<std::int64_t>(8 * index_of(law)) + static_cast<int>(result.outcome));
  met(Situation::kernel, static_cast<std::int64_t>(2 * n) + (result.outcome == Outcome::pass));
  // The ratio of what is undecided, or has no bound, says nothing of the kernel.
  if (result.outcome != Outcome::pass) return;
  met_ratio(n, result.worst_ratio);
  if (!(result.worst_ratio > worst_[n] * 1.01)) return;
  worst_[n] = result.worst_ratio;
  std::fprintf(stderr, "attest-worst: %s %.6g\n", subject.kernel.name.c_str(), result.worst_ratio);
}

double CaseTarget::worst() const { return *std::max_element(worst_.begin(), worst_.end()); }

void CaseTarget::run(std::span<const std::uint8_t> bytes) {
  ++tally.inputs;
  const Genome genome = decode(bytes);
  const std::size_t n = genome[Gene::kernel] % subjects_.size();
  const Subject& subject = subjects_[n];
  const Law& encloses = *subject.laws.front();
  const Law& law = *subject.laws[genome[Gene::law] % subject.laws.size()];
  Case c = to_case(genome, subject.setting);
  // Some laws speak only of cases with a masked row, spare keys, ...: shaped as the generator does. Literal tensors
  // have the shape that they were written for.
  if (genome[Gene::shaped] && law.shape_case && c.values.tensors.empty()) {
    Random random(c.values.seed);
    const Case before = c;
    if (c.op != Op::forward) c.mask = {};  // the laws block keys of a step in its scores
    law.shape_case(c, random);
    drop_foreign(c, before);
    agree(c, random);
  }
  cover(c, subject.kernel);
  check(c, n, encloses);
  if (&law != &encloses) check(c, n, law);
}

}  // namespace attest::fuzz
