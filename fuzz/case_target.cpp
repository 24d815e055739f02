#include "fuzz/case_target.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "fuzz/case_coverage.h"
#include "fuzz/counters.h"
#include "fuzz/target.h"
#include "properties/check.h"
#include "properties/device.h"
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

bool on_device(const Subject& s) { return s.kernel.abi->device != ATTN_DEVICE_CPU; }

void say_tally() {
  std::fprintf(stderr, "attest-checks: %lld made, %lld passed, %lld rejected\n", static_cast<long long>(tally.checks),
               static_cast<long long>(tally.accepted), static_cast<long long>(tally.rejected));
}

std::size_t index_of(const Law& law) { return static_cast<std::size_t>(&law - laws().data()); }

}  // namespace

CaseTarget::CaseTarget(std::string name, std::vector<Subject> subjects)
    : name_(std::move(name)), folder_("."), subjects_(std::move(subjects)), worst_(subjects_.size()) {
  if (const char* folder = std::getenv("ATTEST_FUZZ_CASES")) folder_ = folder;
  // A crash inside a kernel leaves libFuzzer's bytes; replayed with the variable set they leave a .case as well. Beside
  // a launch the write is cheap, and what a device does to a process may leave no bytes.
  if (std::getenv("ATTEST_FUZZ_RECORD") || std::any_of(subjects_.begin(), subjects_.end(), on_device))
    record_.emplace(folder_ + "/running-" + name_ + "-" + std::to_string(getpid()) + ".case");
}

CaseTarget::~CaseTarget() { say_tally(); }

void CaseTarget::report(Case c, const Subject& subject, const Law& law, const CheckResult& result) {
  // The engine goes on after this crash and keeps the bytes of it: a case for every one would fill the disk.
  if (folder_.empty()) std::abort();
  c.about = "found by fuzz_" + name_;
  const std::string path = folder_ + "/" + name_ + "-" + case_hash(c) + ".case", kernel = subject.kernel.name,
                    law_name(law.name);
  save_case(c, path);
  if (record_) record_->discard();
  std::fprintf(stderr, "attest-finding: %s %s %s %s\n", path.c_str(), kernel.c_str(), law_name.c_str(),
               describe(result).c_str());
  std::fprintf(stderr, "reproduce: attest check %s --kernels %s --laws %s\n", path.c_str(), kernel.c_str(),
               law_name.c_str());
  std::abort();
}

CheckResult CaseTarget::check_recorded(const Case& c, const Subject& subject, const Law& law) {
  if (record_) {
    Case now = c;
    now.about = "its kernel was running when fuzz_" + name_ + " ended";
    now.kernels = {subject.kernel.name};
    now.laws = {std::string(law.name)};
    record_->begin(now);
  }
  CheckResult result = check_case(c, subject.kernel, law, context_of(c, kJudgedRows));
  if (const auto lost = device_lost(); lost && result.outcome != Outcome::fail) {
    result.outcome = Outcome::fail;
    result.reason = "the device was lost: " + *lost;
  }
  if (record_) record_->end();
  return result;
}

void CaseTarget::check(const Case& c, std::size_t n, const Law& law) {
  const Subject& subject = subjects_[n];
  if (!law.why_not(c, subject.kernel).empty()) return;
  const CheckResult result = check_recorded(c, subject, law);
  if (result.outcome == Outcome::fail) report(c, subject, law, result);
  ++tally.checks;
  if (result.outcome == Outcome::pass) ++tally.accepted;
  if (result.outcome == Outcome::rejected) ++tally.rejected;
  if (tally.checks >= 1024 && std::has_single_bit(static_cast<std::uint64_t>(tally.checks))) say_tally();
  met(Situation::outcome, static_cast<std::int64_t>(8 * index_of(law)) + static_cast<int>(result.outcome));
  met(Situation::kernel, static_cast<std::int64_t>(2 * n) + (result.outcome == Outcome::pass));
  // The ratio of what is undecided, or has no bound, says nothing of the kernel.
  if (result.outcome != Outcome::pass) return;
  // Rounding an output to 16 bits has its own half ulp in error and bound: beside it the ratio is soon 1 and says
  // little.
  const bool rounded = subject.may_round_output && c.out == OutDType::storage;
  met_ratio(n, Part::other, result.worst_ratio);
  met_ratio(n, rounded ? Part::rounded_o : Part::o, result.worst_o);
  const double ratio = c.op != Op::forward ? result.worst_ratio : rounded ? 0 : result.worst_o;
  // A line for each percent gained, or twentieth of what is left to 1.
  if (!(ratio > worst_[n] * 1.01) && !(1 - ratio < (1 - worst_[n]) * 0.95)) return;
  worst_[n] = ratio;
  std::fprintf(stderr, "attest-worst: %s %.7g\n", subject.kernel.name.c_str(), ratio);
}

double CaseTarget::worst() const { return *std::max_element(worst_.begin(), worst_.end()); }

Case CaseTarget::case_of(const Genome& genome, const Subject& subject, const Law& law) const {
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
  return made_for(std::move(c), subject.kernel, subject.setting.limited);
}

void CaseTarget::run(std::span<const std::uint8_t> bytes) {
  ++tally.inputs;
  const Genome genome = decode(bytes);
  const std::size_t n = genome[Gene::kernel] % subjects_.size();
  const Subject& subject = subjects_[n];
  const Law& encloses = *subject.laws.front();
  const Law& law = *subject.laws[genome[Gene::law] % subject.laws.size()];
  const Case c = case_of(genome, subject, law);
  cover(c, subject.kernel);
  check(c, n, encloses);
  if (&law != &encloses) check(c, n, law);
}

}  // namespace attest::fuzz
