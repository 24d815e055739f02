// bench: how fast.
#include <CLI/CLI.hpp>
#include <memory>

#include "reports/tool/bench.h"
#include "reports/tool/cli.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr const char* bench_help = R"(
Examples:
  attest bench --list                                      the cells, and the work in one call of each
  attest bench --device cuda                               all of them, beside PyTorch where it is
  attest bench --cells 'decode.*' --peers none             our own numbers alone
  attest bench --cells '*.d128.causal.*' --require-ratio 1 exit 1 where FLASH is faster
  attest bench --kernels 'cuda.scan.*' --sizes 4096x5000   rows x columns of your own
  attest bench --json bench.json --markdown bench.md

A cell is one shape: forward (TFLOP/s; 4 B H S^2 D operations, half of it if causal), decode (GB/s of K and V),
scan (GB/s read and written, beside a copy), copy and matmul for scale. All contenders of a cell are timed in turns, by
events. `device` time is that of calls enqueued before the first begins, so that no launch is waited for; `call` time is
that of one call on an idle device. Every timed output is checked once against another kernel's and the peer's.
The peer is a Python process (--python) with PyTorch's FLASH and cuDNN backends, on the same values.)";

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  BenchOptions& o = *options;
  CLI::App* b = app.add_subcommand("bench", "Speed of our kernels, beside peers measured in the same run");
  b->footer(std::string(bench_help) + "\n" + R"(
Exit codes: 0 measured, or there is no device; 1 an output is wrong, a kernel failed, or a cell is below --require-ratio;
2 usage or bad input; 3 no failure, but something required was not measured; 130 interrupted, what was measured is kept.)");
  b->add_option("--device", o.device, "Where: cuda")->check(CLI::IsMember({"cuda"}))->capture_default_str();
  b->add_option("--kernels", o.kernels, "Kernels to time (globs). Default: all of the device that suit a cell")
      ->type_name("GLOB");
  b->add_option("--cells", o.choice.cells, "Cells to time (globs; --list names them). Default: all")->type_name("GLOB");
  b->add_option(
       "--sizes", o.choice.sizes,
       "Instead of the default ones: lengths (4096, 16k) of forward and decode, and rows x columns (4096x1k) of scans")
      ->delimiter(',')
      ->type_name("N");
  b->add_option("--formats", o.choice.formats, "Of attention: bf16, fp16, fp32. Default: bf16")
      ->delimiter(',')
      ->type_name("F");
  b->add_option("--peers", o.peers, "torch, or none")->check(CLI::IsMember({"torch", "none"}))->capture_default_str();
  b->add_option("--python", o.python, "The Python that has torch")->type_name("FILE")->capture_default_str();
  b->add_option("--timing", o.timing, "The time that lines and --require-ratio are about; reports have both")
      ->check(CLI::IsMember({"device", "call"}))
      ->capture_default_str();
  b->add_option("--rounds", o.rounds, "Turns of all contenders of a cell")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  b->add_option("--effort", o.effort, "Milliseconds of device time for a contender and turn, about")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  b->add_option("--seconds", o.seconds, "Begin no cell after so long; the result is marked truncated")
      ->check(seconds_fault, "", "");
  b->add_option("--seed", o.seed, "Seed of the inputs")->capture_default_str()->check(seed_fault, "", "");
  b->add_option("--require", o.require, "Exit 3 if there is no such device: cuda")->check(CLI::IsMember({"cuda"}));
  b->add_option("--require-ratio", o.ratio, "Exit 1 if a cell's ratio to FLASH is below R, 3 if it was not measured")
      ->type_name("R")
      ->check(seconds_fault, "", "");
  b->add_option("--json", o.json, "Write the report as JSON; '-' for standard output")->type_name("FILE");
  b->add_option("--markdown", o.markdown, "Write the report as Markdown")->type_name("FILE");
  b->add_flag("--list", o.list, "Print the cells and end");
  b->add_flag("--quiet", o.quiet, "Only the summary");
  b->callback([options, b, &action] {
    BenchOptions& o = *options;
    o.command = "attest bench";
    // As typed: every option that was given, in the order of --help.
    for (const CLI::Option* option : b->get_options())
      if (option->count() > 0) {
        o.command += " " + option->get_name();
        for (const std::string& word : option->get_expected_max() > 0 ? option->results() : std::vector<std::string>{})
          o.command += " " + shell_quoted(word);
      }
    if (o.json == "/dev/stdout") o.json = "-";
    action = [options] { return run_bench(*options); };
  });
}

}  // namespace attest
