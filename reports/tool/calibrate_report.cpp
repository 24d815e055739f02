#include "reports/tool/calibrate_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/tool/calibrate_tables.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string version(int cuda) { return text("%d.%d", cuda / 1000, cuda % 1000 / 10); }

Json extreme(const cal::Extreme& e) {
  return {{"size", e.size}, {"input", text("%08x", e.input)}, {"output", text("%08x", e.output)}};
}

Json tally(const cal::Tally& t) {
  return {{"results", t.results},
          {"not_rounded", t.unrounded},
          {"doubtful", t.doubtful},
          {"beyond_documented", t.undocumented},
          {"relative_above", extreme(t.above)},
          {"relative_below", extreme(t.below)},
          {"absolute", extreme(t.absolute)},
          {"ulps", extreme(t.ulps)},
          {"ulps_off", extreme(t.distance)},
          {"below_normal", t.small},
          {"below_normal_to_zero", t.small_to_zero},
          {"below_normal_not_rounded", t.small_unrounded},
          {"overflows", t.overflows},
          {"class_wrong", t.misclassified},
          {"order_wrong", t.disordered}};
}

Json scores(const InstructionFacts& facts) {
  Json list = Json::array();
  for (const auto* of : {&facts.search, &facts.lowest})
    for (const ModelScore& s : *of) list.push_back({{"model", model_name(s.model)}, {"misses", s.misses}});
  return list;
}

Json instruction(const InstructionFacts& i) {
  Json j = {{"instruction", name(i.instruction)}, {"format", name(i.format)}, {"present", i.present}};
  if (!i.present) return j;
  j["model"] = {{"terms", i.model.terms}, {"fraction_bits", i.model.fraction_bits}, {"name", model_name(i.model)}};
  j["models_that_match"] = i.matching, j["searched"] = i.searched, j["models"] = scores(i);
  using cal::Chain;
  for (const auto& [word, chain] : {std::pair{"one", Chain::one}, std::pair{"four", Chain::four},
                                    std::pair{"four_from_zero", Chain::four_from_zero}}) {
    const ChainFacts& f = i.chains[static_cast<std::size_t>(chain)];
    Json& row = j[word];
    row["dots"] = f.dots, row["misses"] = f.misses, row["nan"] = f.nan, row["infinite"] = f.infinite;
    row["subnormal"] = f.small, row["zero"] = f.zero;
    if (f.misses > 0) row["missed_kinds"] = f.missed_kinds;
  }
  return j;
}

Json constant(const Constant& c) {
  Json j = {{"name", c.name},   {"documented", c.documented}, {"source", c.source}, {"measured", c.measured},
            {"where", c.where}, {"holds", c.holds()},         {"faults", c.faults}};
  j["claims"] = Json::array();
  for (const Claim& claim : c.claims)
    j["claims"].push_back({{"value", claim.value}, {"holds", claim.holds}, {"kernels", claim.kernels}});
  return j;
}

}  // namespace

std::string verdict_of(const std::vector<Constant>& constants) {
  const bool pass = std::all_of(constants.begin(), constants.end(), [](const Constant& c) { return c.holds(); });
  return pass ? "pass" : "fail";
}

std::string describe(const cal::Device& d) {
  return text("%s (sm_%d%d, %d multiprocessors), driver %s for CUDA %s; sm_%d code by %s with CUDA %s", d.name.c_str(),
              d.major, d.minor, d.multiprocessors, d.driver.empty() ? "of unknown version" : d.driver.c_str(),
              version(d.driver_cuda).c_str(), d.code, d.compiler.c_str(), version(d.runtime_cuda).c_str());
}

std::string calibration_text(const Calibration& c, const std::vector<Constant>& constants, bool brief) {
  std::string out = describe(c.device) + "\nu = 2^-24\n\n";
  if (!brief)
    for (const ReportTable& t : calibration_tables(c)) out += as_text(t) + "\n";
  return out + as_text(constants_table(constants)) + "\n";
}

std::string calibration_json(const Calibration& c, const std::vector<Constant>& constants) {
  const cal::Device& d = c.device;
  Json j = {{"schema", "attest-calibrate/1"}, {"verdict", verdict_of(constants)},    {"seed", c.seed}, {"dots", c.dots},
            {"seconds", c.seconds},           {"build", file_hash("/proc/self/exe")}};
  j["device"] = {{"name", d.name},
                 {"architecture", text("sm_%d%d", d.major, d.minor)},
                 {"multiprocessors", d.multiprocessors},
                 {"driver", d.driver},
                 {"driver_cuda", version(d.driver_cuda)},
                 {"runtime_cuda", version(d.runtime_cuda)},
                 {"code", text("sm_%d", d.code)},
                 {"compiler", d.compiler}};
  for (const Constant& k : constants) j["constants"].push_back(constant(k));
  for (const FunctionFacts& f : c.functions) {
    Json& row = j["functions"][std::string(name(f.function))];
    row = tally(f.total());
    row["exact"] = text("%d of %d", f.exact, f.exact_of);
    for (std::size_t i = 0; i < f.special.size(); ++i) row["special"][special_names[i]] = text("%08x", f.special[i]);
  }
  for (const Difference& k : c.differences)
    j["differences"].push_back({{"function", name(k.f)}, {"beside", name(k.g)}, {"inputs", k.count}});
  j["misrounded"] = {{"fp16", c.misrounded_fp16}, {"bf16", c.misrounded_bf16}};
  for (const InstructionFacts& i : c.instructions) j["instructions"].push_back(instruction(i));
  j["examples"] = examples_of(c);
  j["reference"] = {{"inputs", c.reference.inputs}, {"worst", c.reference.worst}, {"where", c.reference.where}};
  return j.dump(1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

std::string calibration_markdown(const Calibration& c, const std::vector<Constant>& constants,
                                 const std::string& command) {
  std::string out = "# Constants of the CUDA Contracts, measured\n\n" + describe(c.device) + ". Made by\n\n    " +
                    command +
                    text("\n\nin %.0f seconds. Verdict: **%s**.\n\n", c.seconds, verdict_of(constants).c_str());
  out +=
      R"(u = 2^-24. An exhaustive maximum is a bound; the matrix instructions are sampled, and a sample without a miss is no
proof. Errors are against fp64 on the device, whose worst inputs are computed again at 200 bits; "doubtful" counts results
so near to a rounding boundary that fp64 cannot tell whether they are rounded correctly. "x @ y": the size x, seen at the
input with the bits y. A number in brackets after a claim: so many Contracts make it.

)";
  out += as_markdown(constants_table(constants));
  for (const Constant& k : constants)
    for (const std::string& fault : k.faults) out += "\n**" + fault + "**\n";
  for (const ReportTable& t : calibration_tables(c)) out += "\n" + as_markdown(t);
  const std::vector<std::string> examples = examples_of(c);
  if (!examples.empty()) out += "\n## Dot products that the model misses\n\n";
  for (const std::string& e : examples) out += "    " + e + "\n";
  return out;
}

}  // namespace attest
