#include "reports/tool/calibrate.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "impl/registry.h"
#include "reports/tool/calibrate_report.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

// Without a device there is nothing to judge, and the reports say so.
int not_run(const CalibrateOptions& o, const std::string& why, std::ostream& out) {
  const nlohmann::ordered_json report = {{"schema", "attest-calibrate/1"}, {"verdict", "not_run"}, {"message", why}};
  if (!o.json.empty()) write_whole(o.json, report.dump(1) + "\n");
  if (!o.markdown.empty())
    write_whole(o.markdown, "# Constants of the CUDA Contracts, measured\n\nNOT_RUN: " + why + "\n");
  out << "NOT_RUN  " << why << (o.require.empty() ? "" : "; cuda is required") << "\n" << std::flush;
  return o.require.empty() ? 0 : 3;
}

// The call that measures the same again.
std::string command(const CalibrateOptions& o) {
  return text("attest calibrate --seed %llu --dots %lld", static_cast<unsigned long long>(o.seed),
              static_cast<long long>(o.dots));
}

}  // namespace

int run_calibrate(const CalibrateOptions& options) {
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  cal::Device device;
  std::string why;
  if (!cal::describe(device, why)) return not_run(options, why, out);
  const bool live = !options.quiet && isatty(STDERR_FILENO);
  const auto progress = [live](const std::string& what) {
    if (live) std::fprintf(stderr, "\r%s\x1b[K", what.c_str());
  };
  const auto kernels = attn::cuda_kernels();
  const Calibration c = measure(device, options.seed, options.dots, log_absolutes(kernels), progress);
  if (live) std::fputs("\r\x1b[K", stderr);
  const std::vector<Constant> constants = judge(c, kernels);
  if (!options.json.empty()) write_whole(options.json, calibration_json(c, constants));
  if (!options.markdown.empty()) write_whole(options.markdown, calibration_markdown(c, constants, command(options)));
  out << calibration_text(c, constants, options.quiet);
  for (const Constant& k : constants)
    for (const std::string& fault : k.faults) out << "FAILS  " << fault << "\n";
  const bool pass = verdict_of(constants) == "pass";
  out << text("%s  %zu kernels, seed %llu, %lld dot products for each instruction and kind of input, %.0f s\n",
              pass ? "PASS" : "FAIL", kernels.size(), static_cast<unsigned long long>(options.seed),
              static_cast<long long>(options.dots), c.seconds)
      << std::flush;
  return pass ? 0 : 1;
}

}  // namespace attest
