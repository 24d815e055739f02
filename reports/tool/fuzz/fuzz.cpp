#include "reports/tool/fuzz/fuzz.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "reports/tool/fuzz/campaign.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

constexpr double log_every = 10;  // seconds

std::atomic<bool> interrupt{false};
static_assert(std::atomic<bool>::is_always_lock_free);
void on_interrupt(int) { interrupt = true; }

class Campaign {
 public:
  explicit Campaign(const FuzzOptions& options)
      : options_(options),
        engine_(fuzz_engine(options)),
        targets_(fuzz_targets(options, engine_->preset())),
        folder_(options, targets_),
        findings_(folder_, options_, *engine_),
        progress_(targets_.size()),
        log_(folder_.log(), std::ios::app) {
    if (!log_) throw UsageError("cannot write to " + folder_.log().string());
  }

  int run() {
    live_ = !options_.quiet && isatty(STDERR_FILENO);
    begin_ = fuzz_clock();
    std::uint64_t seed = options_.seed * 1000003u + static_cast<std::uint64_t>(folder_count()) * 7919u;
    for (std::size_t n = 0; !over(); n = (n + 1) % targets_.size()) {
      if (std::all_of(progress_.begin(), progress_.end(), [](const FuzzProgress& p) { return !p.broken.empty(); }))
        break;
      if (!progress_[n].broken.empty()) continue;
      // What is left is shared among the targets whose turn comes yet in this round.
      const double left = begin_ + options_.seconds - fuzz_clock();
      const double turn = options_.seconds > 0
                              ? std::min(engine_->longest_turn(), left / static_cast<double>(targets_.size() - n))
                              : engine_->longest_turn();
      FuzzTurn t(targets_[n], options_, folder_, *engine_, findings_, progress_[n], seed);
      seed += 1000;
      t.run(
          turn, [&] { return over(); }, [&] { tick(n); },
          [&](const std::string& line) { std::cout << clear() << line << "\n"
                                                   << std::flush; });
      write_log(n);
    }
    return finish();
  }

 private:
  bool over() const { return interrupt || (options_.seconds > 0 && fuzz_clock() - begin_ >= options_.seconds); }
  const char* clear() const { return live_ ? "\r\x1b[K" : ""; }
  std::int64_t folder_count() const {
    std::int64_t n = 0;
    for (const FuzzTarget& t : targets_) n += folder_.count(t);
    return n;
  }

  std::string line(std::size_t n) const {
    const FuzzProgress& p = progress_[n];
    const auto [kernel, ratio] = p.worst_of_all();
    return text("fuzz_%-9s %12lld executions, %8.0f/s for each worker, %lld edges, ", targets_[n].name.c_str(),
                static_cast<long long>(p.executions), p.rate(), static_cast<long long>(p.edges)) +
           (p.features >= 0 ? text("%lld features, ", static_cast<long long>(p.features)) : "") +
           text("%lld inputs", static_cast<long long>(folder_.count(targets_[n]) + p.ungathered)) +
           (kernel.empty() ? "" : text(", error/bound %.4f of %s", ratio, kernel.c_str())) +
           (p.checks.made == 0 ? ""
                               : text(", %.1f %% rejected", 100.0 * static_cast<double>(p.checks.rejected) /
                                                                static_cast<double>(p.checks.made))) +
           text(", %lld findings", static_cast<long long>(findings_.kinds(targets_[n])));
  }

  void tick(std::size_t n) {
    if (live_) std::cerr << clear() << text("%.0f s  ", fuzz_clock() - begin_) << line(n) << std::flush;
    if (fuzz_clock() - logged_ >= log_every) write_log(n);
  }

  void write_log(std::size_t n) {
    logged_ = fuzz_clock();
    const FuzzProgress& p = progress_[n];
    Json j;
    j["seconds"] = std::round((fuzz_clock() - begin_) * 10) / 10;
    j["engine"] = options_.engine;
    j["target"] = targets_[n].name;
    j["jobs"] = options_.jobs;
    j["executions"] = p.executions;
    j["edges"] = p.edges;
    if (p.features >= 0) j["features"] = p.features;
    j["inputs"] = folder_.count(targets_[n]) + p.ungathered;
    j["findings"] = findings_.kinds(targets_[n]);
    j["worst"] = Json::object();
    for (const auto& [kernel, ratio] : p.worst) j["worst"][kernel] = ratio;
    log_ << j.dump() << std::endl;
  }

  int finish() {
    if (live_) std::cerr << clear();
    bool broken = false;
    for (std::size_t n = 0; n < targets_.size(); ++n) {
      std::string why;
      if (!options_.keep_all && !interrupt && progress_[n].broken.empty() && progress_[n].executions > 0 &&
          !folder_.minimise(targets_[n], *engine_, why))
        std::cout << why << "\n";
      std::cout << line(n) << "\n";
      if (progress_[n].broken.empty()) continue;
      broken = true;
      std::cout << "  " << progress_[n].broken << "\n";
    }
    const std::int64_t found = findings_.kinds();
    std::cout << (found > 0 ? "FAIL"
                  : broken  ? "INCOMPLETE"
                            : "PASS")
              << text("  seed %llu: %lld findings, %.0f s%s; inputs and log in %s\n",
                      static_cast<unsigned long long>(options_.seed), static_cast<long long>(found),
                      fuzz_clock() - begin_, interrupt ? ", interrupted" : "", options_.corpus.c_str());
    return found > 0 ? 1 : broken ? 3 : 0;
  }

  const FuzzOptions& options_;
  std::unique_ptr<FuzzEngine> engine_;
  std::vector<FuzzTarget> targets_;
  FuzzFolder folder_;
  FuzzFindings findings_;
  std::vector<FuzzProgress> progress_;
  std::ofstream log_;
  bool live_ = false;
  double begin_ = 0, logged_ = 0;
};

}  // namespace

int run_fuzz(const FuzzOptions& given) {
  FuzzOptions options = given;
  if (options.jobs == 0) options.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  interrupt = false;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  const int code = Campaign(options).run();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  return code;
}

}  // namespace attest
