#include "reports/tool/calibrate_tables.h"

#include <algorithm>
#include <cmath>

#include "reports/tool/text.h"

namespace attest {
namespace {

using cal::Extreme;
using cal::Function;
using cal::Tally;

std::string whole(std::uint64_t n) { return text("%llu", static_cast<unsigned long long>(n)); }
std::string at(const Extreme& e, const char* sign, double scale = 1) {
  return e.size > 0 ? text("%s%.4f @ %08x", sign, e.size * scale, e.input) : "0";
}

const char* documented(Function f) {
  switch (f) {
    case Function::exp2_flushed:
    case Function::exp2_approx:
      return "2 ulp (PTX)";
    case Function::exp2_gradual:
    case Function::exp:
      return "2 ulp (guide)";
    case Function::exp_shared:
      return "1.40918 u for x <= 0";
    case Function::log:
      return "1 ulp (guide)";
    case Function::log2_approx:
      return "2^-22 abs. on (0.5, 2), else rel. (PTX)";
    case Function::reciprocal:
    case Function::division:
      return "rounded (guide)";
    default:
      return "1 ulp (PTX)";
  }
}

// Binades of a positive exponent range, e.g. sum(facts, 0, 3, false) = [1, 8).
Tally sum(const FunctionFacts& facts, int first, int last, bool negative) {
  Tally all;
  const std::size_t offset = negative ? 256 + 127 : 127;
  for (int e = first; e < last; ++e) add(all, facts.binades[offset + static_cast<std::size_t>(e)]);
  return all;
}

ReportTable function_table(const Calibration& c) {
  ReportTable t{"Special functions, each of the 2^32 inputs (errors of results in the normal range)",
                {"function", "documented", "results", "not rounded (doubtful)", "ulps off", "ulp", "rel. error +, u",
                 "rel. error -, u", "breaks documented", "class wrong", "order wrong"},
                {}};
  for (const FunctionFacts& f : c.functions) {
    const Tally all = f.total();
    // Near 1 the relative error of lg2.approx has no limit; its absolute error there is in the table of logarithms.
    Tally errors = all;
    if (f.function == Function::log2_approx) {
      errors = sum(f, -127, -1, false);
      add(errors, sum(f, 1, 128, false));
    }
    t.rows.push_back({std::string(name(f.function)), documented(f.function), whole(all.results),
                      whole(all.unrounded) + " (" + whole(all.doubtful) + ")",
                      text("%.0f @ %08x", errors.distance.size, errors.distance.input), at(errors.ulps, ""),
                      at(errors.above, "+"), at(errors.below, "-"), whole(all.undocumented), whole(all.misclassified),
                      whole(all.disordered)});
  }
  return t;
}

ReportTable special_table(const Calibration& c) {
  ReportTable t{"Special inputs, exact results, results below 2^-126", {"function"}, {}};
  for (const char* n : special_names) t.header.push_back(n);
  for (const char* n : {"exact where a float is", "below 2^-126", "of them 0", "of them not rounded"})
    t.header.push_back(n);
  for (const FunctionFacts& f : c.functions) {
    std::vector<std::string> row = {std::string(name(f.function))};
    for (std::uint32_t y : f.special) row.push_back(text("%08x", y));
    const Tally all = f.total();
    row.push_back(text("%d of %d", f.exact, f.exact_of));
    for (std::uint64_t n : {all.small, all.small_to_zero, all.small_unrounded}) row.push_back(whole(n));
    t.rows.push_back(row);
  }
  return t;
}

ReportTable exp_table(const Calibration& c) {
  ReportTable t{"ex2.approx.ftz.f32 by argument, relative error in u", {"x", "least", "most", "mean", "rms"}, {}};
  struct Range {
    const char* name;
    int first, last;
    bool negative;
  };
  const FunctionFacts& f = c.of(Function::exp2_flushed);
  for (const Range& r :
       {Range{"x <= 0", -127, 128, true}, Range{"x <= -1", 0, 128, true}, Range{"-[64, 128)", 6, 7, true},
        Range{"-[4, 64)", 2, 6, true}, Range{"-[1, 4)", 0, 2, true}, Range{"-[0.5, 1)", -1, 0, true},
        Range{"-[0.25, 0.5)", -2, -1, true}, Range{"-[2^-6, 0.25)", -6, -2, true}, Range{"-[2^-9, 2^-6)", -9, -6, true},
        Range{"-[2^-22, 2^-9)", -22, -9, true}, Range{"x >= 0", -127, 128, false}, Range{"[1, 128)", 0, 7, false}}) {
    const Tally s = sum(f, r.first, r.last, r.negative);
    const double n = s.results > 0 ? static_cast<double>(s.results) : 1;
    t.rows.push_back(
        {r.name, at(s.below, "-"), at(s.above, "+"), text("%+.3f", s.sum / n), text("%.3f", std::sqrt(s.squares / n))});
  }
  return t;
}

ReportTable log_table(const Calibration& c) {
  ReportTable t{"Logarithms by argument, largest absolute error in u", {"function"}, {}};
  const std::pair<const char*, int> ranges[] = {{"[0.5, 1)", -1},     {"[1, 2)", 0},       {"[2, 4)", 1},
                                                {"[4, 8)", 2},        {"[8, 16)", 3},      {"[16, 32)", 4},
                                                {"[32, 64)", 5},      {"[64, 128)", 6},    {"[2^10, 2^11)", 10},
                                                {"[2^16, 2^17)", 16}, {"[2^23, 2^24)", 23}};
  for (const auto& [label, exponent] : ranges) t.header.push_back(label);
  for (Function f : {Function::log2_approx, Function::log}) {
    std::vector<std::string> row = {std::string(name(f))};
    for (const auto& [label, exponent] : ranges)
      row.push_back(text("%.3f", sum(c.of(f), exponent, exponent + 1, false).absolute.size));
    t.rows.push_back(row);
  }
  return t;
}

ReportTable difference_table(const Calibration& c) {
  ReportTable t{"Inputs, of 2^32, on which two functions differ", {"function", "beside", "inputs"}, {}};
  for (const Difference& d : c.differences)
    t.rows.push_back({std::string(name(d.f)), std::string(name(d.g)), whole(d.count)});
  return t;
}

ReportTable instruction_table(const Calibration& c) {
  ReportTable t{"Matrix instructions beside the model, bit for bit (fp32 accumulators)",
                {"instruction", "format", "model", "models that match", "one", "four in a row", "four, from zero",
                 "NaN, inf, subnormal, 0 seen"},
                {}};
  for (const InstructionFacts& i : c.instructions) {
    std::vector<std::string> row = {std::string(name(i.instruction)), std::string(name(i.format))};
    if (!i.present) {
      for (const char* cell : {"not on this device", "", "", "", "", ""}) row.push_back(cell);
      t.rows.push_back(row);
      continue;
    }
    row.push_back(model_name(i.model));
    row.push_back(text("%d of %zu", i.matching, i.search.size()));
    std::uint64_t seen[4] = {};
    for (const ChainFacts& chain : i.chains) {
      row.push_back(whole(chain.dots - chain.misses) + "/" + whole(chain.dots) +
                    (chain.misses > 0 ? " (missed: " + chain.missed_kinds + ")" : ""));
      seen[0] += chain.nan, seen[1] += chain.infinite, seen[2] += chain.small, seen[3] += chain.zero;
    }
    row.push_back(whole(seen[0]) + ", " + whole(seen[1]) + ", " + whole(seen[2]) + ", " + whole(seen[3]));
    t.rows.push_back(row);
  }
  return t;
}

// What each instruction would match of if it were another one.
ReportTable model_table(const Calibration& c) {
  ReportTable t{"Models beside mma.sync: share of dot products that match", {"model"}, {}};
  std::vector<const InstructionFacts*> shown;
  for (const InstructionFacts& i : c.instructions)
    if (i.present && i.instruction == cal::Instruction::mma) shown.push_back(&i);
  for (const InstructionFacts* i : shown) t.header.push_back(std::string(name(i->format)));
  if (shown.empty()) return t;
  const auto add_row = [&](std::vector<ModelScore> InstructionFacts::*list, std::size_t n) {
    std::vector<std::string> row = {model_name((shown[0]->*list)[n].model)};
    for (const InstructionFacts* i : shown) {
      const std::uint64_t misses = (i->*list)[n].misses;
      row.push_back(misses == 0 ? "all " + whole(i->searched)
                                : text("%.4f %% (misses %s)",
                                       100 * (1 - static_cast<double>(misses) / static_cast<double>(i->searched)),
                                       whole(misses).c_str()));
    }
    t.rows.push_back(row);
  };
  for (std::size_t n = 0; n < shown[0]->search.size(); ++n) add_row(&InstructionFacts::search, n);
  for (std::size_t n = 0; n < shown[0]->lowest.size(); ++n) add_row(&InstructionFacts::lowest, n);
  return t;
}

}  // namespace

std::vector<ReportTable> calibration_tables(const Calibration& c) {
  return {function_table(c),   special_table(c),     exp_table(c),  log_table(c),
          difference_table(c), instruction_table(c), model_table(c)};
}

ReportTable constants_table(const std::vector<Constant>& constants) {
  ReportTable t{"Constants of the CUDA Contracts",
                {"constant", "documented", "source", "measured", "where", "claimed by Contracts", "verdict"},
                {}};
  for (const Constant& c : constants) {
    std::string claims;
    for (const Claim& claim : c.claims)
      claims += (claims.empty() ? "" : "; ") + text("%s (%zu)", claim.value.c_str(), claim.kernels.size());
    t.rows.push_back({c.name, c.documented, c.source, c.measured, c.where, claims.empty() ? "-" : claims,
                      c.holds() ? "holds" : "FAILS"});
  }
  return t;
}

std::string model_name(const cal::Accumulation& m) {
  constexpr const char* cuts[] = {"toward zero", "down", "to nearest"};
  std::string out = text("L %d, F %d", m.terms, m.fraction_bits);
  if (m.align != cal::Cut::toward_zero) out += std::string(", terms cut ") + cuts[static_cast<int>(m.align)];
  if (m.result != cal::Cut::toward_zero) out += std::string(", result cut ") + cuts[static_cast<int>(m.result)];
  if (m.lowest < -1000) return out + ", E without a limit";
  if (m.lowest != cal::Accumulation().lowest) out += text(", E >= %d", m.lowest);
  return out;
}

std::vector<std::string> examples_of(const Calibration& c) {
  std::vector<std::string> lines;
  for (const InstructionFacts& i : c.instructions)
    for (const ChainFacts& chain : i.chains)
      for (const cal::Miss& m : chain.examples) {
        std::string line =
            text("%s %s, %d products: got %08x, model %08x, from c %08x, a b", std::string(name(i.instruction)).c_str(),
                 std::string(name(i.format)).c_str(), m.count, m.got, m.want, m.start);
        for (int k = 0; k < m.count; ++k) line += text(" %04x*%04x", m.a[k], m.b[k]);
        lines.push_back(line);
      }
  return lines;
}

}  // namespace attest
