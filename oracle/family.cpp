// The table of value families: names, purposes, parameters and their ranges.
#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/case_error.h"
#include "oracle/recipe.h"

namespace attest {
namespace {

// Ranges of parameters, by name (the same in every family). Reals that scale values may take any finite magnitude:
// the values made from them are cut to the storage format's range.
struct Range {
  std::string_view name;
  double lo, hi;
  bool whole;
};
constexpr std::array<Range, 18> ranges = {{{"state", 0, 2, true},
                                           {"pattern", 0, 3, true},
                                           {"position", -1, 0x1p40, true},
                                           {"axis", 0, 2, true},
                                           {"tensor", 0, 2, true},
                                           {"exponent", 0, 1000, true},
                                           {"exponent_qk", 0, 500, true},
                                           {"share", 0, 1, false},
                                           {"sigma", 0, 0x1p1000, false},
                                           {"magnitude", 0, 0x1p1000, false},
                                           {"level", -0x1p1000, 0x1p1000, false},
                                           {"step", -0x1p1000, 0x1p1000, false},
                                           {"gap", 0, 0x1p1000, false},
                                           {"margin", 0, 0x1p1000, false},
                                           {"high", -0x1p1000, 0x1p1000, false},
                                           {"low", -0x1p1000, 0x1p1000, false},
                                           {"value", -0x1p1000, 0x1p1000, false},
                                           {"noise", 0, 0x1p1000, false}}};

std::vector<Family> make_families() {
  std::vector<Family> f = {
      {"gaussian", "q, k, v ~ N(0, sigma^2): ordinary activations", true, {{"sigma", 1}}},
      {"uniform", "q, k, v uniform in [-1, 1)", true, {}},
      {"outliers",
       "N(0, 1), and a share of the entries with N(0, sigma^2) on top (FlashAttention-3's accuracy test)",
       true,
       {{"share", 0.001}, {"sigma", 10}}},
      {"swings",
       "scores swing by +-magnitude between key blocks; pattern 0 rising, 1 falling, 2 alternating, 3 staircase",
       false,
       {{"magnitude", 1000}, {"pattern", 2}, {"noise", 1}}},
      {"very-negative",
       "all scores about -level: finds finite sentinels in the place of -inf, and maxima that start at 0",
       false,
       {{"level", 6e4}, {"noise", 1}}},
      {"constant-large",
       "q = k = value everywhere: raw scores that saturate fp16 or lose their low bits",
       false,
       {{"value", 32}}},
      {"ties", "all scores of a row equal, V random: O is the plain mean", false, {}},
      {"near-ties", "scores differ by 0 to 3 times gap around level", false, {{"gap", 0x1p-10}, {"level", 0}}},
      {"needle",
       "one key dominates by margin; position -1 puts it at the first key of the second block",
       false,
       {{"margin", 50}, {"position", -1}, {"noise", 1}}},
      {"one-hot-v", "row j of V is the unit vector j mod d_v: O is P itself, folded", false, {}},
      {"index-v",
       "V is the index of the kv head (axis 0), the batch entry (1) or the key (2): finds addressing",
       false,
       {{"axis", 2}}},
      {"two-level", "scores 0, V = 0 on the first half of the keys and 1 on the second: O = 1/2 at even Tk", false, {}},
      {"cancelling-v",
       "neighbouring keys have equal scores and V = +-value + N(0, 1): the big parts cancel",
       false,
       {{"value", 1000}}},
      {"subnormal",
       "subnormal values in V (tensor 0), K (1) or both (2), for the case's format or for all of them",
       false,
       {{"tensor", 0}}},
      {"wide-range",
       "V of magnitude 2^-exponent to 2^exponent, q and k of 2^-exponent_qk to 2^exponent_qk, random signs",
       false,
       {{"exponent", 10}, {"exponent_qk", 1}}},
      {"ascending",
       "the maximum rises by step at every key block: every block rescales",
       false,
       {{"step", 1}, {"noise", 0.0625}}},
      {"constant-v", "V = value everywhere: O is that value whatever the scores", false, {{"value", 1}}},
      {"zeros", "q = k = v = 0", false, {}},
      {"max-then-lower",
       "the first key block has scores high, all others low: later blocks must be scaled down",
       false,
       {{"high", 200}, {"low", 0}, {"noise", 1}}},
      {"lower-then-max",
       "the last key block has scores high, all others low: earlier blocks must vanish",
       false,
       {{"high", 200}, {"low", 0}, {"noise", 1}}},
      {"exp2-trap",
       "scores level + step * block, equal within a block: a rounded product in exp2(x c - m c) explodes",
       false,
       {{"level", 133120}, {"step", 0}}},
  };
  // Where step and merge states come from: 0 empty, 1 not empty, 2 some of each.
  for (Family& family : f) family.parameters.emplace_back("state", 2);
  return f;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = make_families();
  return all;
}

const Family* find_family(std::string_view name) {
  for (const Family& f : families())
    if (same_name(f.name, name)) return &f;
  return nullptr;
}

void check_family(const Case& c, const std::string& origin) {
  const Family* const family = find_family(c.values.family);
  if (!family) {
    std::string known;
    for (const Family& f : families()) known += (known.empty() ? "" : ", ") + std::string(f.name);
    case_error(origin, "values.family", "unknown family '" + printable(c.values.family) + "'; known: " + known);
  }
  for (const auto& [name, x] : c.values.parameters) {
    const auto field = [&, &given = name] { return "values.parameters." + printable(given); };
    const auto is_it = [&, &given = name](const auto& parameter) { return same_name(parameter.first, given); };
    if (std::none_of(family->parameters.begin(), family->parameters.end(), is_it)) {
      std::string known;
      for (const auto& [p, unused] : family->parameters) known += (known.empty() ? "" : ", ") + std::string(p);
      case_error(origin, field(), "family " + std::string(family->name) + " has no such parameter; it has: " + known);
    }
    for (const Range& r : ranges) {
      if (!same_name(r.name, name)) continue;
      if (!(x >= r.lo && x <= r.hi) || (r.whole && x != std::floor(x)))
        case_error(origin, field(),
                   std::to_string(x) + " is out of range; use " + (r.whole ? "a whole number in " : "") +
                       std::to_string(r.lo) + " to " + (r.hi >= 0x1p100 ? "2^1000" : std::to_string(r.hi)));
    }
  }
}

}  // namespace attest
