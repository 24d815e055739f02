#include "reports/tool/mutants_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "properties/check.h"
#include "properties/device.h"
#include "properties/mutants/cuda/device_mutants.h"
#include "reports/tool/mutants_child.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using mutants::DeviceMutant;

// Indices of the table.
std::vector<std::size_t> chosen_mutants(const MutantOptions& options) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < mutants::device_table().size(); ++i)
    if (matches_any(options.mutants, mutants::device_table()[i].facts.name)) out.push_back(i);
  if (out.empty()) {
    std::string names;
    for (const DeviceMutant& m : mutants::device_table()) names += " " + std::string(m.facts.name);
    throw UsageError("no GPU mutant matches --mutants; there are" + names);
  }
  return out;
}

// Laws and tools that the globs choose.
struct Columns {
  std::vector<std::string> law_globs;
  std::vector<const Law*> all;
  std::size_t laws = 0;  // the first of them; the rest are tools

  explicit Columns(const std::vector<std::string>& globs) {
    std::vector<const Law*> tools;
    for (const Law& t : sanitizer_tools())
      if (matches_any(globs, t.name)) tools.push_back(&t);
    for (const std::string& g : globs)
      if (std::none_of(tools.begin(), tools.end(), [&](const Law* t) { return glob_match(g, t->name); }) ||
          std::any_of(attest::laws().begin(), attest::laws().end(),
                      [&](const Law& l) { return glob_match(g, l.name); }))
        law_globs.push_back(g);
    if (globs.empty() || !law_globs.empty()) all = select_laws(law_globs);
    laws = all.size();
    all.insert(all.end(), tools.begin(), tools.end());
  }
};

// One row over all seeds, and what its processes found. The seeds' rows come first.
struct Judged {
  KillRow empty;
  std::vector<KillRow> found;
};

class DeviceRuns {
 public:
  DeviceRuns(const MutantOptions& options, const Columns& columns) : options_(options), columns_(columns) {
    for (Kernel& k : mutants::device_control_kernels()) add(k, nullptr);
    std::vector<Kernel> planted = mutants::device_mutant_kernels();
    for (const std::size_t i : chosen_mutants(options)) add(planted[i], &mutants::device_table()[i].facts);
    sanitizer_ = columns.all.size() > columns.laws ? find_sanitizer() : "";
  }

  void run() {
    std::vector<Task> tasks;
    // What takes longest first.
    for (Judged& s : subjects_)
      if (columns_.laws > 0 && has_targeted(s)) tasks.push_back({&s, "targeted", 0});
    for (Judged& s : subjects_) {
      if (columns_.laws > 0 && !options_.corpus.empty() && options_.corpus != "none")
        tasks.push_back({&s, "corpus", 1});
      for (std::size_t n = 0; n < options_.seeds.size() && columns_.laws > 0; ++n)
        tasks.push_back({&s, n == 0 ? "laws" : "kill", n});
      for (std::size_t t = columns_.laws; t < columns_.all.size() && !sanitizer_.empty(); ++t)
        if (watches(*columns_.all[t], s)) tasks.push_back({&s, "launch", t});
    }
    // A kernel that hangs slows down every other process on the device.
    std::stable_partition(tasks.begin(), tasks.end(), [](const Task& t) {
      return !t.subject->empty.mutant || t.subject->empty.mutant->killer != "synccheck";
    });
    for (Judged& s : subjects_) s.found.assign(options_.seeds.size() + 2 + columns_.all.size(), s.empty);
    std::atomic<std::size_t> next{0};
    std::exception_ptr fault;
    std::mutex fault_lock;
    const bool live = !options_.quiet && isatty(STDERR_FILENO);
    const auto worker = [&] {
      for (std::size_t n = next++; n < tasks.size(); n = next++) {
        try {
          perform(tasks[n]);
        } catch (...) {  // no process to be had
          const std::lock_guard<std::mutex> hold(fault_lock);
          fault = std::current_exception();
          return;
        }
        if (live) std::fprintf(stderr, "\r%zu of %zu processes\x1b[K", n + 1, tasks.size());
      }
    };
    {
      std::vector<std::jthread> threads;
      const int jobs =
          options_.jobs > 0 ? options_.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
      for (int t = 0; t < jobs; ++t) threads.emplace_back(worker);
    }
    if (fault) std::rethrow_exception(fault);
    if (live) std::fputs("\r\x1b[K", stderr);
  }

  KillMatrix matrix(std::size_t seed) const {
    KillMatrix m;
    m.seed = options_.seeds[seed];
    m.laws = columns_.all;
    for (const Judged& s : subjects_) {
      KillRow row = s.found[seed];
      for (std::size_t n = options_.seeds.size(); n < s.found.size(); ++n) add_findings(row, s.found[n]);
      if (!row.killed() && row.mutant) row.not_run = why_not_judged(row, s);
      m.rows.push_back(std::move(row));
    }
    m.about = "GPU mutants on " + mutants::device_name() + ". Of compute-sanitizer: " +
              (sanitizer_.empty() ? "nothing, it is not here" : sanitizer_version(sanitizer_)) +
              "; its tools watch one launch on one small problem, whatever the seed. The corpus is replayed once, "
              "without its largest cases.";
    count(m, options_.seconds);
    return m;
  }

 private:
  struct Task {
    Judged* subject;
    std::string part;
    std::size_t index;  // of the seed, or of the tool's column; of targeted cases 0, of the corpus 1
  };

  void add(Kernel& k, const mutants::Mutant* m) {
    subjects_.push_back({make_row(std::move(k), m, columns_.all, {}), {}});
  }

  // A tool takes seconds: it is asked about every control and about the mutants that are its own; about all if asked
  // to.
  bool watches(const Law& tool, const Judged& s) const {
    return !options_.laws.empty() || !s.empty.mutant || s.empty.mutant->killer == tool.name;
  }

  // A control must pass the cases that are aimed at a mutant of its flavour.
  static bool has_targeted(const Judged& s) {
    for (const mutants::TargetedCase& t : mutants::targeted_cases())
      for (const DeviceMutant& m : mutants::device_table())
        if (m.bug == t.bug &&
            (s.empty.mutant == &m.facts || (!s.empty.mutant && s.empty.kernel.kernel.contract_name == m.facts.preset)))
          return true;
    return false;
  }

  void perform(const Task& task) {
    const std::string& name = task.subject->empty.kernel.kernel.name;
    std::vector<std::string> command = {own_path(), "mutants", "--device", "cuda", "--one", task.part + ":" + name};
    if (task.part == "launch") {
      command.insert(command.end(), {"--corpus", "none"});
      return launch(task, command);
    }
    const bool seeded = task.part == "laws" || task.part == "kill";
    command.insert(command.end(), {"--cases", std::to_string(options_.cases), "--seed",
                                   std::to_string(options_.seeds[seeded ? task.index : 0]), "--corpus",
                                   task.part == "corpus" ? options_.corpus : "none"});
    for (const std::string& g : columns_.law_globs) command.insert(command.end(), {"--laws", g});
    const Ended e = run_child(command, options_.limit_seconds * (task.part == "targeted" ? 6 : 1));
    KillRow& row = task.subject->found[task.index + (seeded ? 0 : options_.seeds.size())];
    const std::size_t at = e.output.rfind("\n= ");
    try {
      if (!e.ending.empty() || at == std::string::npos) throw std::runtime_error("no row");
      read_row(row, columns_.all, e.output.substr(at + 1, e.output.find('\n', at + 1) - at - 1));
    } catch (const std::exception&) {
      blame_last_check(row, columns_.all, e.output, e.ending.empty() ? "ended without a result" : e.ending);
      row.seconds_to_kill = e.seconds;
    }
  }

  void launch(const Task& task, const std::vector<std::string>& command) {
    const Law& tool = *columns_.all[task.index];
    const SanitizerRun r = run_sanitizer(sanitizer_, std::string(tool.name), command, 2 * options_.limit_seconds);
    KillRow& row = task.subject->found[options_.seeds.size() + 2 + task.index];
    Cell& cell = row.cells[task.index];
    if (!r.ran) row.not_run = "compute-sanitizer " + std::string(tool.name) + ": " + r.evidence;
    cell.checks = r.ran;
    if (!r.found) return;
    cell.killed = true;
    row.first_case = "one launch";
    cell.killing_case = r.evidence;
    row.first_law = tool.name;
    row.checks_to_kill = 1;
    row.seconds_to_kill = r.seconds;
    row.reason = r.evidence;
  }

  // Of a survivor that a tool should have seen.
  std::string why_not_judged(const KillRow& row, const Judged& s) const {
    for (std::size_t t = columns_.laws; t < columns_.all.size(); ++t) {
      if (columns_.all[t]->name != row.mutant->killer) continue;
      if (sanitizer_.empty()) return "compute-sanitizer is neither on PATH nor in the CUDA toolkit";
      return s.found[options_.seeds.size() + 2 + t].not_run;
    }
    return "";
  }

  const MutantOptions& options_;
  const Columns& columns_;
  std::deque<Judged> subjects_;
  std::string sanitizer_;
};

}  // namespace

std::string why_no_device_mutants(const MutantOptions& options) {
  const std::vector<std::size_t> chosen = chosen_mutants(options);
  const auto missing = why_no_device(ATTN_DEVICE_CUDA);
  if (!missing) return "";
  std::vector<std::string> names;
  for (const std::size_t i : chosen) names.push_back("mutant." + std::string(mutants::device_table()[i].facts.name));
  return not_run_line(names, *missing);
}

std::vector<KillMatrix> fill_device_matrices(const MutantOptions& options) {
  const Columns columns(options.laws);
  DeviceRuns runs(options, columns);
  runs.run();
  std::vector<KillMatrix> out;
  for (std::size_t n = 0; n < options.seeds.size(); ++n) out.push_back(runs.matrix(n));
  return out;
}

}  // namespace attest
