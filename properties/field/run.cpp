#include "properties/field/run.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "oracle/problem.h"
#include "properties/field/build.h"
#include "properties/field/launch.h"
#include "properties/field/merge.h"
#include "properties/field/reference.h"
#include "properties/shapes.h"

namespace attest::field {
namespace {

// A test with its values, its reference, and launches in waiting: a problem costs more to make than a kernel to run.
struct Prepared {
  std::once_flag once;
  Case problem;
  Reference reference;
  std::mutex guard;
  std::vector<std::unique_ptr<Launch>> waiting;
  std::map<std::string, std::vector<std::uint64_t>> correct;  // bits of kernels without a bug, by name
};

bool is_16_bit(std::int32_t dtype) { return dtype == ATTN_FP16 || dtype == ATTN_BF16; }

// A 16-bit kernel is not run in fp32. Any forward kernel runs in the project's 16-bit formats: that is the kernel which
// the project would test.
bool takes(const Kernel& kernel, DType format) {
  return format == DType::fp16 || format == DType::bf16 || !is_16_bit(kernel.abi->contract.in_dtype);
}

// A kernel that splits does so wherever the test leaves the choice open, as real ones do on small problems.
std::int64_t splits_for(const Case& c, const Kernel& kernel) {
  return kernel.abi->contract.algorithm == ATTN_ALG_SPLIT && c.tiling.splits == 0 ? 3 : c.tiling.splits;
}

std::unique_ptr<Launch> take_launch(Prepared& p, const Project& project, const Test& test, const Kernel& kernel) {
  std::unique_ptr<Launch> launch;
  {
    const std::lock_guard lock(p.guard);
    if (!p.waiting.empty()) {
      launch = std::move(p.waiting.back());
      p.waiting.pop_back();
    }
  }
  if (!launch) launch = std::make_unique<Launch>(p.problem, project, test.lse);
  launch->split(splits_for(p.problem, kernel));
  launch->prefill();
  return launch;
}

void give_back(Prepared& p, std::unique_ptr<Launch> launch) {
  const std::lock_guard lock(p.guard);
  p.waiting.push_back(std::move(launch));
}

// The first entries of the batch.
Case alone(const Case& c, std::int64_t entries) {
  Shape s = c.shape;
  s.batch = entries;
  return with_shape(c, s);
}

}  // namespace

struct Examiner::State {
  std::uint64_t seed;
  int seeds;
  std::vector<std::vector<std::unique_ptr<Prepared>>> tests;  // by project, then test x seed

  Prepared& prepared(const Project& project, std::size_t test, int n) const {
    const std::size_t at = static_cast<std::size_t>(&project - projects().data());
    Prepared& p = *tests.at(at).at(test * static_cast<std::size_t>(seeds) + static_cast<std::size_t>(n));
    std::call_once(p.once, [&] {
      const Test& t = project.tests[test];
      p.problem = t.problem;
      t.fill(p.problem, seed + 1000003 * static_cast<std::uint64_t>(n) + 7919 * test);
      const Launch launch(p.problem, project);
      p.reference = reference_for(project, launch.problem(), read_inputs(launch.problem()));
    });
    return p;
  }

  const std::vector<std::uint64_t>& correct_bits(Prepared& p, const Project& project, const Test& test,
                                                 const Kernel& kernel) const {
    {
      const std::lock_guard lock(p.guard);
      if (const auto at = p.correct.find(kernel.name); at != p.correct.end()) return at->second;
    }
    std::unique_ptr<Launch> launch = take_launch(p, project, test, kernel);
    std::vector<std::uint64_t> bits;
    if (launch->run(kernel)) bits = launch->bits();
    give_back(p, std::move(launch));
    const std::lock_guard lock(p.guard);
    return p.correct.try_emplace(kernel.name, std::move(bits)).first->second;
  }

  // "" if the test passes, else what it would say. touched: whether the bug changed a bit that the kernel wrote.
  std::string failure(const Project& project, const Test& test, Prepared& p, const Kernel& kernel,
                      const Kernel* correct, bool& ran, bool& touched) const {
    std::unique_ptr<Launch> taken = take_launch(p, project, test, kernel);
    Launch& launch = *taken;
    std::vector<std::uint64_t> first;
    Outputs outputs[2];
    for (int n = 0; n < test.runs; ++n) {
      if (n > 0) launch.prefill();
      if (!launch.run(kernel)) return launch.fault();
      ran = true;
      outputs[std::min(n, 1)] = launch.outputs();
      if (n == 0) first = launch.bits();
      if (n > 0 && test.same_bits && launch.bits() != first) return "two runs differ";
    }
    const Launch::Damage damage = launch.damage();
    touched |= !damage.report.empty() || (correct && first != correct_bits(p, project, test, *correct)) || !correct;
    if (project.sees_margins && damage.margins) return damage.report;

    // Where the reference comes last, it takes the inputs as the kernel left them.
    std::optional<Reference> changed;
    if (project.reference_after && damage.inputs)
      changed = reference_for(project, launch.problem(), read_inputs(launch.problem()));
    const Rule& rule = test.rule ? test.rule : project.rule;
    for (int n = 0; n < std::min(test.runs, 2); ++n)
      if (!rule({outputs[n], changed ? *changed : p.reference, test.problem.dtype, test.problem.shape.tk}))
        return "the outputs are not close";

    if (test.alone > 0) {
      Launch part(alone(p.problem, test.alone), project, test.lse);
      part.split(splits_for(p.problem, kernel));
      if (!part.run(kernel)) return part.fault();
      if (!part.is_start_of(launch)) return "the batch size changes bits";
    }
    if (damage.report.empty()) give_back(p, std::move(taken));
    return "";
  }
};

Examiner::Examiner(std::uint64_t seed, int seeds) : state_(std::make_unique<State>()) {
  state_->seed = seed;
  state_->seeds = seeds;
  for (const Project& p : projects()) {
    auto& of_project = state_->tests.emplace_back();
    for (std::size_t i = 0; i < p.tests.size() * static_cast<std::size_t>(seeds); ++i)
      of_project.push_back(std::make_unique<Prepared>());
  }
}
Examiner::~Examiner() = default;

Opinion Examiner::ask(const Project& project, const Kernel& kernel, const Kernel* correct) const {
  Opinion opinion;
  const auto hear = [&](const std::string& failure, bool touched, const std::string& name) {
    ++opinion.tests;
    opinion.sight = std::max(opinion.sight, touched ? Sight::accepted : Sight::untouched);
    if (failure.empty()) return false;
    opinion.sight = Sight::caught, opinion.by = name + ": " + failure;
    return true;
  };
  if (kernel.abi->op == ATTN_OP_MERGE) {
    for (const MergeTest& t : project.merges)
      for (int n = 0; n < state_->seeds; ++n) {
        const MergeResult r =
            run_merge_test(t, kernel, correct, state_->seed + 1000003 * static_cast<std::uint64_t>(n));
        if (r.ran && hear(r.failure, r.touched, "merge of " + std::to_string(t.rows) + " rows")) return opinion;
      }
    return opinion;
  }
  if (kernel.abi->op != ATTN_OP_FORWARD) return opinion;
  for (std::size_t i = 0; i < project.tests.size(); ++i) {
    const Test& t = project.tests[i];
    if (!takes(kernel, t.problem.dtype)) continue;
    for (int n = 0; n < state_->seeds; ++n) {
      bool ran = false, touched = false;
      const std::string failure =
          state_->failure(project, t, state_->prepared(project, i, n), kernel, correct, ran, touched);
      if ((ran || !failure.empty()) && hear(failure, touched, describe(t))) return opinion;
    }
  }
  return opinion;
}

}  // namespace attest::field
