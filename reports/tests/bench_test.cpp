// `attest bench` without a device: cells and the work in them, the run over a device made of host memory, peers that
// fail, what reports say, and NOT_RUN.
#include "reports/tool/bench.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "impl/registry.h"
#include "reports/tests/bench_host.h"
#include "reports/tests/run_tool.h"
#include "reports/tool/bench_problem.h"
#include "reports/tool/bench_report.h"
#include "reports/tool/bench_run.h"
#include "reports/tool/text.h"

namespace attest::testing {
namespace {

BenchCell small_forward(bool causal = false) {
  BenchCell c;
  c.dtype = ATTN_FP32;
  c.batch = 1, c.q_heads = 2, c.kv_heads = 2, c.tq = 16, c.tk = 16, c.d = 32;
  c.causal = causal;
  return c;
}

BenchResult measure(const std::vector<BenchCell>& cells, std::span<const attn_kernel> kernels,
                    const std::vector<std::string>& globs, BenchPeer* peer = nullptr, const BenchWatch& watch = {}) {
  HostDevice device;
  BenchPlan plan = bench_plan(kernels, globs, cells, peer != nullptr);
  plan.rounds = 2;
  BenchResult result;
  bench_measure(device, peer, plan, watch, result);
  return result;
}

// A peer process that answers as the shell script says.
std::unique_ptr<BenchPeer> scripted(const std::string& script, std::string& why) {
  const std::string path = scratch() + "/peer";
  write_file(path, "#!/bin/sh\n" + script);
  chmod(path.c_str(), 0755);
  return BenchPeer::start(
      path, [] { return false; }, why);
}

constexpr const char* patient_peer = R"(echo '{"torch": "0", "device": "none"}'
while read -r line; do case "$line" in
  *'"cmd":"cell"'*) echo '{"peers": ["torch.flash", "torch.cudnn"]}' ;;
  *torch.cudnn*) echo '{"error": "no cuDNN"}' ;;
  *) echo '{"device": [100, 300, 200], "call": [400], "calls": 1, "hidden": true}' ;;
esac; done)";

TEST(Bench, DefaultCellsAreThoseOfTheComparison) {
  std::size_t forward = 0, decode = 0, scan = 0;
  for (const BenchCell& c : bench_cells({})) {
    if (c.kind == BenchKind::forward) {
      ++forward;
      EXPECT_EQ(c.batch * c.tq, 16384) << c.name();
      EXPECT_EQ(c.q_heads * c.d, 2048) << c.name();
    }
    decode += c.kind == BenchKind::decode;
    scan += c.kind == BenchKind::scan;
  }
  EXPECT_EQ(forward, 3u * 2 * 6);
  EXPECT_EQ(decode, 3u * 3);
  EXPECT_EQ(scan, 5u);
}

TEST(Bench, WorkIsCountedAsThePublishedFiguresCountIt) {
  const auto one = [](const char* name) { return bench_cells({{name}, {}, {}}).at(0); };
  EXPECT_EQ(one("forward.bf16.d128.full.4096").flops(), 4.0 * 4 * 16 * 4096 * 4096 * 128);
  EXPECT_EQ(one("forward.bf16.d128.causal.4096").flops(), 2.0 * 4 * 16 * 4096 * 4096 * 128);
  EXPECT_EQ(one("decode.bf16.b8.16384").bytes(), 2.0 * 2 * 8 * 8 * 16384 * 128);  // K and V, 8 kv heads, 2 bytes each
  EXPECT_EQ(one("scan.4096x4096").bytes(), 4.0 * 4096 * 4096 + 4.0 * 4 * 4096);
  EXPECT_EQ(one("copy.1GiB").bytes(), 2.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(one("copy.1GiB").rate(0.5), 4 * 1.073741824);  // GB/s
  EXPECT_DOUBLE_EQ(one("matmul.bf16.8192").rate(1), 2 * std::pow(8192.0, 3) / 1e12);
}

TEST(Bench, SizesAndFormatsOfOnesOwn) {
  const std::vector<BenchCell> cells =
      bench_cells({{"forward.*.d64.full.*", "scan.*"}, {"2k", "3x5"}, {"fp16", "fp32"}});
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].name(), "scan.3x5");
  EXPECT_EQ(cells[1].name(), "forward.fp16.d64.full.2048");
  EXPECT_EQ(cells[2].name(), "forward.fp32.d64.full.2048");
  for (const char* size : {"", "0", "-1", "4096x", "x1", "1e3", "4kk", "99999999999999999999"})
    EXPECT_THROW(bench_cells({{}, {size}, {}}), UsageError) << size;
  EXPECT_THROW(bench_cells({{}, {}, {"fp8"}}), UsageError);
  EXPECT_THROW(bench_cells({{"forwards.*"}, {}, {}}), UsageError);
}

TEST(Bench, TensorsLieApartAndTheirSetsExceedTheCache) {
  const BenchCell c = small_forward();
  const BenchLayout layout = bench_layout(c, 10000);
  std::vector<BenchField> all = layout.outputs;
  std::size_t inputs = 0;
  for (const auto& set : layout.sets)
    for (const BenchField& f : set) all.push_back(f), inputs += f.bytes();
  EXPECT_GE(inputs, 4 * 10000u);
  for (const BenchField& f : layout.reference) all.push_back(f);
  for (const BenchField& f : all) {
    EXPECT_EQ(f.offset % 256, 0u);
    EXPECT_GE(f.offset, 256u);
    EXPECT_LE(f.offset + f.bytes(), layout.bytes);
    for (const BenchField& g : all)
      EXPECT_TRUE(&f == &g || f.offset + f.bytes() <= g.offset || g.offset + g.bytes() <= f.offset);
  }
}

TEST(Bench, MedianAndQuartiles) {
  const BenchSpread s = bench_spread({5, 1, 4, 2, 3});
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.low, 2);
  EXPECT_EQ(s.high, 4);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 5);
  EXPECT_EQ(bench_spread({1, 2}).median, 1.5);
  EXPECT_EQ(bench_spread({}).samples, 0);
}

TEST(Bench, OutputsMustBeThereAndNear) {
  for (const std::int32_t dtype : {ATTN_BF16, ATTN_FP16, ATTN_FP32}) {
    EXPECT_FALSE(bench_is_wrong({0, 1, 0}, dtype));
    EXPECT_TRUE(bench_is_wrong({0, 1, 1}, dtype));  // an element that is not finite
    EXPECT_TRUE(bench_is_wrong({0, 0, 0}, dtype));  // nothing but zeros
    EXPECT_TRUE(bench_is_wrong({0.1, 1, 0}, dtype));
    EXPECT_TRUE(bench_is_wrong({NAN, 1, 0}, dtype));
  }
}

TEST(Bench, EveryKernelIsCheckedAndTimedInEveryRound) {
  const BenchResult r = measure({small_forward(), small_forward(true)}, attn::cpu_kernels(), {"*.fp32"});
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_EQ(r.wrong(), std::vector<std::string>{});
  for (const BenchCellResult& c : r.cells) {
    std::size_t timed = 0;
    for (const BenchContender& k : c.contenders) {
      if (k.status == BenchStatus::refused) continue;
      ++timed;
      EXPECT_EQ(k.times.device.size(), 2 * c.sets) << k.name;
      ASSERT_FALSE(k.differences.empty()) << k.name;
      EXPECT_NE(k.differences[0].first, k.name);
      EXPECT_LT(k.differences[0].second.value, 1e-5) << k.name;
    }
    EXPECT_GE(timed, 3u);  // standard, fa1, fa2; causal too where it is causal
    EXPECT_TRUE(c.fastest(BenchRole::kernel, "cpu.", BenchTiming::device));
  }
}

TEST(Bench, AScanIsComparedWithItsDefinition) {
  BenchCell c;
  c.kind = BenchKind::scan;
  c.dtype = ATTN_FP32;
  c.rows = 5, c.columns = 37;
  const BenchResult r = measure({c}, attn::cpu_kernels(), {"cpu.scan.fp32"});
  ASSERT_EQ(r.cells.size(), 1u);
  const BenchContender* k = r.cells[0].fastest(BenchRole::kernel, "cpu.scan", BenchTiming::device);
  ASSERT_TRUE(k);
  ASSERT_EQ(k->differences.size(), 2u);  // m, l
  EXPECT_EQ(k->differences[0].second.value, 0);
  EXPECT_LT(k->differences[1].second.value, 1e-5);
  // The copy beside it moves as many bytes, in words of 256.
  const BenchContender* copy = r.cells[0].fastest(BenchRole::yardstick, "copy", BenchTiming::device);
  ASSERT_TRUE(copy);
  EXPECT_GT(copy->bytes, c.bytes() - 512);
  EXPECT_LE(copy->bytes, c.bytes());
}

TEST(Bench, YardsticksStandAlone) {
  std::string why;
  const auto peer = scripted(R"(echo '{"torch": "0"}'
while read -r line; do case "$line" in
  *'"kind":"copy"'*) echo '{"peers": ["torch.copy"]}' ;;
  *'"cmd":"cell"'*) echo '{"peers": ["torch.matmul"]}' ;;
  *) echo '{"device": [2], "call": [4], "calls": 1, "hidden": true}' ;;
esac; done)",
                             why);
  ASSERT_TRUE(peer) << why;
  BenchCell copy, product;
  copy.kind = BenchKind::copy, copy.dtype = ATTN_FP32, copy.rows = 1 << 12, copy.columns = 1;
  product.kind = BenchKind::matmul, product.rows = product.columns = 1000;
  const BenchResult r = measure({copy, product}, attn::cpu_kernels(), {}, peer.get());
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_TRUE(r.cells[0].fastest(BenchRole::yardstick, "copy", BenchTiming::device));
  EXPECT_GT(r.copy_rate(), 0);
  EXPECT_NE(bench_line(r.cells[1], BenchTiming::device).find("matmul 0.0"), std::string::npos);
  EXPECT_EQ(bench_exit_code(r, {}), 0);
}

TEST(Bench, AnOutputThatWasNotWrittenIsWrong) {
  std::vector<attn_kernel> kernels;
  for (const attn_kernel& k : attn::cpu_kernels())
    if (k.name == std::string("cpu.fa2.fp32") || k.name == std::string("cpu.fa1.fp32")) kernels.push_back(k);
  kernels[0].name = "cpu.idle.fp32";
  kernels[0].run = [](const attn_problem*, void*, std::size_t, char*, std::size_t) -> std::int32_t { return ATTN_OK; };
  const BenchResult r = measure({small_forward()}, kernels, {"cpu.idle.*"});
  ASSERT_EQ(r.wrong().size(), 1u);
  EXPECT_NE(r.wrong()[0].find("not written"), std::string::npos) << r.wrong()[0];
  EXPECT_EQ(bench_verdict(r, {}), "fail");
  EXPECT_EQ(bench_exit_code(r, {}), 1);
  EXPECT_NE(bench_line(r.cells[0], BenchTiming::device).find("WRONG cpu.idle.fp32"), std::string::npos);
}

TEST(Bench, RatiosAreToTheFastestPeerOfTheName) {
  BenchResult r;
  BenchCellResult c;
  c.cell = bench_cells({{"decode.bf16.b1.4096"}, {}, {}}).at(0);
  const auto add = [&](const char* name, BenchRole role, const std::vector<double>& seconds) {
    BenchContender k;
    k.name = name, k.role = role, k.times.device = seconds, k.times.call = {1};
    c.contenders.push_back(k);
  };
  add("cuda.decode.bf16.p16", BenchRole::kernel, {2e-6, 1e-6, 3e-6});
  add("torch.flash", BenchRole::peer, {8e-6});
  add("torch.flash-expanded", BenchRole::peer, {3e-6});
  add("torch.cudnn", BenchRole::peer, {1e-6});
  r.cells.push_back(c);
  r.planned = 1;
  EXPECT_DOUBLE_EQ(c.ratio(flash_peer, BenchTiming::device), 1.5);
  EXPECT_DOUBLE_EQ(c.ratio(cudnn_peer, BenchTiming::device), 0.5);
  EXPECT_DOUBLE_EQ(c.ratio(flash_peer, BenchTiming::call), 1);
  EXPECT_DOUBLE_EQ(r.smallest(flash_peer, BenchTiming::device).ratio, 1.5);
  EXPECT_EQ(bench_exit_code(r, {true, 1.5, BenchTiming::device}), 0);
  EXPECT_EQ(bench_exit_code(r, {true, 1.6, BenchTiming::device}), 1);
  r.planned = 2;  // a cell that was not reached has no ratio either
  EXPECT_EQ(bench_exit_code(r, {true, 1.5, BenchTiming::device}), 3);
  EXPECT_EQ(bench_exit_code(r, {}), 0);
  r.interrupted = true;
  EXPECT_EQ(bench_exit_code(r, {}), 130);
  const std::string line = bench_line(c, BenchTiming::device);
  EXPECT_NE(line.find("flash-expanded 5592.4 = 1.50x"), std::string::npos) << line;
  const std::string page = bench_markdown(r, {}, {"attest bench", "0", 3, 1});
  EXPECT_NE(page.find("| decode.bf16.b1.4096 | 8388.6 [6710.9, 11184.8] | cuda.decode.bf16.p16 |"), std::string::npos)
      << page;
  const auto json = nlohmann::json::parse(bench_json(r, {}, {"attest bench", "0", 3, 1}, false));
  EXPECT_EQ(json["schema"], "attest-bench/1");
  EXPECT_EQ(json["cells"][0]["device_ratios"]["fastest_torch.flash"], "torch.flash-expanded");
}

TEST(Bench, APeerIsAskedInTurnsAndItsTroubleIsKept) {
  std::string why;
  const auto peer = scripted(patient_peer, why);
  ASSERT_TRUE(peer) << why;
  const BenchResult r = measure({small_forward()}, attn::cpu_kernels(), {"cpu.fa2.fp32"}, peer.get());
  EXPECT_FALSE(r.shared);
  EXPECT_EQ(r.not_shared, "host memory");
  ASSERT_EQ(r.cells.size(), 1u);
  const BenchContender* flash = r.cells[0].fastest(BenchRole::peer, flash_peer, BenchTiming::device);
  ASSERT_TRUE(flash);
  EXPECT_EQ(flash->times.device.size(), 2u * 3);
  EXPECT_GT(r.cells[0].ratio(flash_peer, BenchTiming::device), 1);
  EXPECT_FALSE(r.cells[0].fastest(BenchRole::peer, cudnn_peer, BenchTiming::device));
  EXPECT_NE(bench_line(r.cells[0], BenchTiming::device).find("FAILED torch.cudnn: no cuDNN"), std::string::npos);
  EXPECT_EQ(bench_exit_code(r, {}), 0);  // a peer that cannot is no failure of ours
}

TEST(Bench, TheRestGoesOnWithoutAPeerThatEnds) {
  std::string why;
  const auto peer = scripted("echo '{}'; read -r line; echo 'last words' >&2", why);
  ASSERT_TRUE(peer) << why;
  const BenchResult r =
      measure({small_forward(), small_forward(true)}, attn::cpu_kernels(), {"cpu.fa2.fp32"}, peer.get());
  EXPECT_NE(r.no_peer.find("last words"), std::string::npos) << r.no_peer;
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_TRUE(r.cells[1].fastest(BenchRole::kernel, "", BenchTiming::device));
}

TEST(Bench, APeerThatDoesNotStartSaysWhy) {
  std::string why;
  EXPECT_FALSE(BenchPeer::start("/nowhere/python", {}, why));
  EXPECT_NE(why.find("/nowhere/python"), std::string::npos);
  EXPECT_FALSE(scripted("echo 'not JSON'", why));
  EXPECT_FALSE(scripted("echo '{\"error\": \"no torch\"}'", why));
  EXPECT_NE(why.find("no torch"), std::string::npos);
  EXPECT_FALSE(scripted("echo 'bad option' >&2; exit 1", why));
  EXPECT_NE(why.find("bad option"), std::string::npos) << why;
}

// The program that is compiled in, with a torch that has no mathematics.
TEST(Bench, ThePeersProgramRuns) {
  if (run_shell("python3 -c 1").code != 0) GTEST_SKIP() << "no python3";
  setenv("PYTHONPATH", ATTEST_SOURCE_DIR "/reports/tests/fake_torch", 1);
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  std::string why;
  const auto peer = BenchPeer::start("python3", {}, why);
  unsetenv("PYTHONPATH");
  ASSERT_TRUE(peer) << why;
  EXPECT_EQ(peer->hello().value("torch", ""), "0.fake");
  EXPECT_NE(peer->ask({{"cmd", "share"}, {"handle", "00"}, {"bytes", 1}, {"stamp", 1}}).value("error", ""), "");
  BenchCell grouped = small_forward(), half = small_forward();
  grouped.kind = BenchKind::decode, grouped.dtype = half.dtype = ATTN_BF16, grouped.kv_heads = 1, grouped.tq = 1;
  for (const BenchCell& c : {grouped, half, small_forward()}) {
    const BenchResult r = measure({c}, attn::cpu_kernels(), {"cpu.*.fp32", "cpu.*.bf16.p16"}, peer.get());
    ASSERT_EQ(r.cells.size(), 1u);
    const bool single = c.dtype == ATTN_FP32;
    EXPECT_TRUE(r.cells[0].fastest(BenchRole::peer, single ? "torch.efficient" : flash_peer, BenchTiming::call));
    std::size_t expanded = 0, without_cudnn = 0;
    for (const BenchContender& k : r.cells[0].contenders) {
      expanded += k.name == "torch.flash-expanded";
      without_cudnn += k.name == cudnn_peer && k.reason == "RuntimeError: No available kernel.";
    }
    EXPECT_EQ(expanded, c.kv_heads == 1 ? 1u : 0u);
    EXPECT_EQ(without_cudnn, single ? 0u : 1u);
  }
}

TEST(Bench, InterruptedItKeepsWhatWasMeasured) {
  int cells = 0;
  BenchWatch watch;
  watch.measured = [&](const BenchResult&, const BenchCellResult&) { ++cells; };
  watch.stop = [&] { return cells > 0; };
  const BenchResult r =
      measure({small_forward(), small_forward(true)}, attn::cpu_kernels(), {"cpu.fa2.fp32"}, nullptr, watch);
  EXPECT_TRUE(r.interrupted);
  ASSERT_EQ(r.cells.size(), 1u);
  EXPECT_TRUE(r.cells[0].fastest(BenchRole::kernel, "", BenchTiming::device));
}

TEST(BenchTool, WithoutADeviceItIsNotRun) {
  std::string why;
  if (cuda_bench_device(why)) GTEST_SKIP() << "there is a device";
  const Ran plain = run_tool("bench --device cuda --markdown x.md");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(plain.out.starts_with("NOT_RUN bench: ")) << plain.out;
  EXPECT_NE(read_file(scratch() + "/x.md").find("NOT_RUN"), std::string::npos);
  EXPECT_EQ(run_tool("bench --require cuda").code, 3);
  EXPECT_EQ(run_tool("bench --require-ratio 1").code, 3);
  const Ran json = run_tool("bench --json -");
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.json()["verdict"], "not_run");
}

TEST(BenchTool, UsageIsTaught) {
  const Ran help = run_tool("bench --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"Examples:", "Exit codes:", "--require-ratio", "--list"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  const Ran list = run_tool("bench --list --cells 'decode.*'");
  EXPECT_EQ(list.code, 0);
  EXPECT_EQ(std::count(list.out.begin(), list.out.end(), '\n'), 9);
  for (const char* wrong : {"bench --sizes 12y", "bench --cells nothing", "bench --kernels 'cpu.*'",
                            "bench --device tpu", "bench --json /absent/x.json", "bench --require-ratio 0"})
    EXPECT_EQ(run_tool(wrong).code, 2) << wrong;
}

}  // namespace
}  // namespace attest::testing
