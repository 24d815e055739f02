#include "reports/tool/calibrate_data.h"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "reports/tool/calibrate_reference.h"

namespace attest {
namespace {

using attn::bits_as;
using attn::CudaFormat;
using cal::Accumulation;
using cal::Chain;
using cal::Function;

constexpr std::int64_t search_dots = std::int64_t{1} << 22;

void require(bool succeeded, const std::string& why) {
  if (!succeeded) throw std::runtime_error("calibrate: " + why);
}

// Inputs with exact results, and these: {input, result} in bits.
std::vector<std::pair<std::uint32_t, std::uint32_t>> exact_points(Function f) {
  const auto bits = [](double x) { return bits_as<std::uint32_t>(static_cast<float>(x)); };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> points;
  for (int e = -126; e <= 127; ++e) {
    const double power = std::ldexp(1.0, e);
    if (f <= Function::exp2_gradual) points.emplace_back(bits(e), bits(power));
    if (f == Function::log2_approx) points.emplace_back(bits(power), bits(e));
    if (f >= Function::reciprocal && e <= 126) points.emplace_back(bits(power), bits(1 / power));
  }
  if (f == Function::log) points.emplace_back(bits(1), bits(0));
  return points;
}

FunctionFacts measure_function(Function f) {
  FunctionFacts facts;
  facts.function = f;
  std::string why;
  require(cal::sweep(f, 0, facts.binades, why), why);
  const auto points = exact_points(f);
  std::vector<std::uint32_t> x, y(points.size());
  for (const auto& [input, result] : points) x.push_back(input);
  require(cal::evaluate(f, x, y, why), why);
  facts.exact_of = static_cast<int>(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) facts.exact += y[i] == points[i].second;
  facts.special.resize(special_inputs.size());
  require(cal::evaluate(f, special_inputs, facts.special, why), why);
  return facts;
}

std::vector<Accumulation> candidates(const Accumulation& documented) {
  std::vector<Accumulation> list;
  for (int terms : {4, 8, 16})
    for (int bits = 22; bits <= 27; ++bits) list.push_back({terms, bits});
  for (cal::Cut align : {cal::Cut::down, cal::Cut::to_nearest})
    list.push_back({documented.terms, documented.fraction_bits, align});
  list.push_back({documented.terms, documented.fraction_bits, cal::Cut::toward_zero, cal::Cut::to_nearest});
  return list;
}

// The same values for every instruction of a format, so that two that match are equal to each other.
std::uint64_t seed_of(std::uint64_t seed, CudaFormat format, std::size_t kind, std::uint64_t part) {
  return cal::spread(cal::spread(seed) + 10000 * part + 1000 * static_cast<std::uint64_t>(format) + kind);
}

void search(InstructionFacts& facts, std::uint64_t seed, int device_major) {
  const Accumulation documented = documented_accumulation(device_major);
  for (const Accumulation& m : candidates(documented)) facts.search.push_back({m, 0});
  for (int lowest : {-134, -132, -10000}) {
    facts.lowest.push_back({documented, 0});
    facts.lowest.back().model.lowest = lowest;
  }
  std::vector<Accumulation> all;
  for (const auto* list : {&facts.search, &facts.lowest})
    for (const ModelScore& s : *list) all.push_back(s.model);
  const auto kinds = cal::inputs_of(facts.format);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    cal::Matches matches;
    std::string why;
    const std::uint64_t own = seed_of(seed, facts.format, kind, 7);
    require(
        cal::compare({facts.format, facts.instruction, Chain::one, own, search_dots}, kinds[kind], all, matches, why),
        why);
    facts.searched += matches.dots;
    std::size_t at = 0;
    for (auto* list : {&facts.search, &facts.lowest})
      for (ModelScore& s : *list) s.misses += matches.misses[at++];
  }
  const ModelScore* best = &facts.search.front();
  for (const ModelScore& s : facts.search) {
    facts.matching += s.misses == 0;
    if (s.misses < best->misses) best = &s;
  }
  facts.model = best->model;
}

ChainFacts verify(const InstructionFacts& of, Chain chain, std::uint64_t seed, std::int64_t dots) {
  ChainFacts facts;
  const auto kinds = cal::inputs_of(of.format);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    cal::Matches m;
    std::string why;
    const std::uint64_t own = seed_of(seed, of.format, kind, static_cast<std::uint64_t>(chain));
    require(cal::compare({of.format, of.instruction, chain, own, dots}, kinds[kind], {&of.model, 1}, m, why), why);
    facts.dots += m.dots, facts.misses += m.misses[0];
    facts.nan += m.nan, facts.infinite += m.infinite, facts.small += m.small, facts.zero += m.zero;
    if (m.misses[0] == 0) continue;
    facts.missed_kinds += (facts.missed_kinds.empty() ? "" : ", ") + std::string(kinds[kind].name);
    for (const cal::Miss& miss : m.examples)
      if (facts.examples.size() < 3) facts.examples.push_back(miss);
  }
  return facts;
}

}  // namespace

cal::Tally FunctionFacts::total() const {
  cal::Tally all;
  for (const cal::Tally& t : binades) add(all, t);
  return all;
}

const FunctionFacts& Calibration::of(cal::Function f) const {
  for (const FunctionFacts& facts : functions)
    if (facts.function == f) return facts;
  throw std::logic_error("a function was not measured");
}

std::string_view name(cal::Function f) {
  constexpr std::string_view names[] = {"ex2.approx.ftz.f32",
                                        "ex2.approx.f32",
                                        "exp2f",
                                        "expf",
                                        "exp_of",
                                        "logf",
                                        "lg2.approx.f32",
                                        "__frcp_rn",
                                        "1.0f / x",
                                        "rcp.approx.f32",
                                        "rcp.approx.ftz.f32"};
  return names[static_cast<std::size_t>(f)];
}

std::string_view name(attn::CudaFormat f) {
  return f == CudaFormat::fp16 ? "fp16" : f == CudaFormat::bf16 ? "bf16" : "fp32";
}

std::string_view name(cal::Instruction i) {
  constexpr std::string_view names[] = {"mma.sync.m16n8k16", "wgmma.m64n8k16", "wgmma.m64n8k16, a in registers",
                                        "wgmma.m64n64k16", "wgmma.m64n64k16, a in registers"};
  return names[static_cast<std::size_t>(i)];
}

cal::Accumulation documented_accumulation(int device_major) {
  if (device_major == 8) return {8, 24};
  return {16, 25};
}

Calibration measure(const cal::Device& device, std::uint64_t seed, std::int64_t dots, const std::vector<double>& spared,
                    const std::function<void(const std::string&)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  Calibration c;
  c.device = device, c.seed = seed, c.dots = dots;
  std::string why;
  for (Function f : cal::functions) {
    progress(std::string(name(f)) + ": all 2^32 inputs");
    c.functions.push_back(measure_function(f));
  }
  progress("the worst inputs again at 200 bits");
  c.reference = check_reference(c.functions);
  for (double s : spared) {
    progress("logf: all 2^32 inputs, an absolute error spared");
    cal::Sweep again;
    require(cal::sweep(Function::log, s, again, why), why);
    LogFacts facts{s, {}};
    for (const cal::Tally& t : again) keep_larger(facts.relative, t.beyond_absolute);
    c.logs.push_back(facts);
  }
  for (const auto& [f, g] : {std::pair{Function::exp2_gradual, Function::exp2_approx},
                             std::pair{Function::exp2_flushed, Function::exp2_approx},
                             std::pair{Function::reciprocal, Function::division}}) {
    progress(std::string(name(f)) + " beside " + std::string(name(g)));
    c.differences.push_back({f, g, 0});
    require(cal::count_differences(f, g, c.differences.back().count, why), why);
  }
  progress("conversions to 16 bits: all 2^32 inputs");
  require(cal::count_misrounded(CudaFormat::fp16, c.misrounded_fp16, why), why);
  require(cal::count_misrounded(CudaFormat::bf16, c.misrounded_bf16, why), why);
  for (CudaFormat format : {CudaFormat::fp16, CudaFormat::bf16})
    for (cal::Instruction instruction : cal::instructions) {
      InstructionFacts& facts = c.instructions.emplace_back();
      facts.format = format, facts.instruction = instruction;
      facts.present = cal::has(instruction);
      if (!facts.present) continue;
      const std::string what = std::string(name(instruction)) + " " + std::string(name(format));
      progress(what + ": which model");
      search(facts, seed, device.major);
      for (Chain chain : {Chain::one, Chain::four, Chain::four_from_zero}) {
        // mma.sync has no way to ignore c: that chain starts from c = 0.
        progress(what + (chain == Chain::one ? ": one at a time" : ": four in a row"));
        facts.chains[static_cast<std::size_t>(chain)] =
            verify(facts, chain, seed, chain == Chain::one ? dots : dots / 4);
      }
    }
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return c;
}

}  // namespace attest
