#include "fuzz/subjects.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "properties/check.h"
#include "properties/device.h"
#include "properties/execute.h"
#include "properties/generate.h"
#include "properties/limits.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "properties/mutants/mutants.h"

namespace attest::fuzz {
namespace {

std::vector<std::string> named_kernels() {
  std::vector<std::string> globs;
  const char* text = std::getenv("ATTEST_FUZZ_KERNELS");
  std::istringstream in(text ? text : "");
  for (std::string glob; std::getline(in, glob, ',');)
    if (!glob.empty()) globs.push_back(glob);
  return globs;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& g) { return glob_match(g, name); });
}

// Without names: those of this device.
std::vector<Kernel> candidates(const std::vector<std::string>& globs, std::int32_t device) {
  std::vector<Kernel> kernels = runnable_kernels();
  if (globs.empty()) {
    std::erase_if(kernels, [&](const Kernel& k) { return k.abi->device != device; });
    return kernels;
  }
  std::erase_if(kernels, [&](const Kernel& k) { return !matches_any(globs, k.name); });
  // "*" means the correct kernels; a mutant has to be meant.
  std::vector<std::string> meant = globs;
  std::erase_if(meant, [](const std::string& g) { return !g.starts_with("mutant."); });
  for (Kernel& k : mutants::mutant_kernels())
    if (matches_any(meant, k.name)) kernels.push_back(std::move(k));
  if (why_no_device(ATTN_DEVICE_CUDA)) return kernels;
  for (Kernel& k : mutants::device_mutant_kernels())
    if (matches_any(meant, k.name)) kernels.push_back(std::move(k));
  return kernels;
}

std::int32_t abi_op(Op op) { return op == Op::step ? ATTN_OP_STEP : op == Op::merge ? ATTN_OP_MERGE : ATTN_OP_FORWARD; }
Op op_of(std::int32_t op) { return op == ATTN_OP_STEP ? Op::step : op == ATTN_OP_MERGE ? Op::merge : Op::forward; }

// The Contract does not say which states a kernel holds; its supports() does.
Setting setting_of(const Kernel& kernel, Op op) {
  const Formats formats = formats_for(kernel);
  Setting s{op, {}, formats.storage, formats.accumulator, limits_for_search(kernel)};
  for (const StateKind kind : {StateKind::ml, StateKind::mla, StateKind::olse}) {
    if (op == Op::step && kind == StateKind::olse) continue;
    Case c;
    c.op = op;
    if (op != Op::forward) c.state = kind;
    const Problem p(c, formats);
    char why[256] = "";
    if (kernel.abi->supports(&p.abi(), why, sizeof why) == ATTN_OK) s.states.push_back(kind);
  }
  if (s.states.empty()) s.states.push_back(StateKind::mla);
  return s;
}

// Asked of cases that are shaped for the law: what it then turns down, it always does.
bool speaks_of(const Law& law, const Kernel& kernel) {
  Random random(1);
  for (int n = 0; n < 8; ++n)
    if (law.why_not(generate_case(kernel, law, random, 0.2), kernel).empty()) return true;
  return false;
}

template <class Wanted>
std::vector<Subject> subjects_that(std::int32_t device, Wanted wanted) {
  std::vector<Subject> subjects;
  for (Kernel& kernel : candidates(named_kernels(), device)) {
    if (!wanted(*kernel.abi)) continue;
    Subject s{std::move(kernel), {}, {}};
    const Op op = op_of(s.kernel.abi->op);
    s.setting = setting_of(s.kernel, op);
    s.may_round_output = op == Op::forward && s.setting.storage != s.setting.accumulator && takes_accumulator(s.kernel);
    for (const Law& law : laws())
      if (law.searched_inputs && speaks_of(law, s.kernel)) s.laws.push_back(&law);
    subjects.push_back(std::move(s));
  }
  if (subjects.empty()) {
    const char* text = std::getenv("ATTEST_FUZZ_KERNELS");
    std::fprintf(stderr, "no kernel for this target matches ATTEST_FUZZ_KERNELS='%s'\n", text ? text : "");
    std::exit(2);
  }
  return subjects;
}

}  // namespace

std::vector<Subject> subjects_of(Op op, std::int32_t algorithm) {
  return subjects_that(ATTN_DEVICE_CPU, [&](const attn_kernel& k) {
    return k.op == abi_op(op) && (!algorithm || k.contract.algorithm == algorithm);
  });
}

std::vector<Subject> subjects_on(std::int32_t device) {
  if (const auto missing = why_no_device(device)) {
    std::fprintf(stderr, "NOT_RUN: %s\n", missing->c_str());
    std::exit(3);
  }
  return subjects_that(device, [&](const attn_kernel& k) { return k.device == device; });
}

}  // namespace attest::fuzz
