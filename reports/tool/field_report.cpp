// The comparison with other projects as text, JSON and Markdown.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/tool/field.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using field::Sight;

constexpr const char* legend =
    "x caught: a test fails   . accepted: results differ from those of the kernel without the bug and every test "
    "passes\n"
    "- untouched: no test lets the bug change a bit   blank: no test of this operation or format\n";

char mark(Sight s) { return " -.x"[static_cast<int>(s)]; }

std::string_view word(Sight s) {
  constexpr std::string_view words[] = {"untested", "untouched", "accepted", "caught"};
  return words[static_cast<int>(s)];
}

std::string row_name(const FieldRow& r) { return r.mutant ? std::string(r.mutant->name) : r.kernel.kernel.name; }

std::string cells(const FieldRow& r) {
  std::string out = text("%-28s", row_name(r).c_str());
  for (const field::Opinion& o : r.opinions) out += text("%7c", mark(o.sight));
  return out + text("%7c  ", r.law.empty() ? '.' : 'x') + (r.law.empty() ? "" : r.law) + "\n";
}

std::string header(const char* first) {
  std::string out = text("%-28s", first);
  for (const field::Project& p : field::projects()) out += text("%7s", std::string(p.column).c_str());
  return out + " Attest\n";
}

std::size_t count(const FieldResult& result, std::size_t project, Sight sight) {
  return static_cast<std::size_t>(std::count_if(result.rows.begin(), result.rows.end(), [&](const FieldRow& r) {
    return r.mutant && r.opinions[project].sight == sight;
  }));
}

std::string totals(const FieldResult& result) {
  std::string out;
  std::size_t killed = 0, planted = 0;
  for (const FieldRow& r : result.rows) planted += r.mutant != nullptr, killed += r.mutant && !r.law.empty();
  for (Sight sight : {Sight::caught, Sight::accepted, Sight::untouched, Sight::untested}) {
    out += text("%-28s", std::string(word(sight)).c_str());
    for (std::size_t p = 0; p < field::projects().size(); ++p) out += text("%7zu", count(result, p, sight));
    if (sight == Sight::caught) out += text("%7zu", killed);
    if (sight == Sight::accepted) out += text("%7zu", planted - killed);
    out += "\n";
  }
  return out;
}

std::string alarms(const FieldResult& result) {
  std::string out;
  for (const FieldRow& r : result.rows)
    for (std::size_t p = 0; p < r.opinions.size(); ++p)
      if (!r.mutant && r.opinions[p].sight == Sight::caught)
        out += "false alarm: " + std::string(field::projects()[p].name) + " on " + r.kernel.kernel.name + ", " +
               r.opinions[p].by + "\n";
  return out.empty() ? "no project's tests fail on a kernel without a bug\n" : out;
}

std::string broken_table(const FieldResult& result) {
  std::string out = header("4096 keys").substr(0, 28 + 7 * field::projects().size()) + "\n";
  for (std::size_t b = 0; b < field::broken_outputs().size(); ++b) {
    out += text("%-28s", std::string(field::broken_outputs()[b].name).c_str());
    for (const auto& project : result.broken) {
      const field::Acceptance& a = project[b];
      out += text("%7c", a.accepted == 0 ? 'x' : a.accepted == a.formats ? '.' : '~');
    }
    out += "\n";
  }
  return out;
}

std::string caught_by_none(const FieldResult& result) {
  std::string out;
  for (const FieldRow& r : result.rows) {
    const bool none = std::none_of(r.opinions.begin(), r.opinions.end(),
                                   [](const field::Opinion& o) { return o.sight == Sight::caught; });
    if (r.mutant && none) out += "  " + row_name(r) + ": " + std::string(r.mutant->description) + "\n";
  }
  return out;
}

}  // namespace

std::string field_text(const FieldResult& result) {
  std::string out = legend;
  out += "\n" + header("mutant");
  for (const FieldRow& r : result.rows)
    if (r.mutant) out += cells(r);
  out += "\n" + totals(result) + "\n" + header("kernel without a bug");
  for (const FieldRow& r : result.rows)
    if (!r.mutant) out += cells(r);
  out += "\n" + alarms(result);
  out += "\nno project's tests catch:\n" + caught_by_none(result);
  out += "\noutputs broken on purpose, under each rule alone: x fails in every format, ~ in some, . passes\n" +
         broken_table(result) + "\n";
  return out;
}

std::string field_json(const FieldResult& result, const FieldOptions& o) {
  nlohmann::ordered_json j;
  j["schema"] = "attest-field/1";
  j["seed"] = o.seed, j["sets_of_values"] = o.seeds, j["cases"] = o.cases;
  for (const field::Project& p : field::projects())
    j["projects"].push_back({{"name", p.name},
                             {"source", p.source},
                             {"inputs", p.inputs},
                             {"reference", p.reference_text},
                             {"rule", p.rule_text},
                             {"blind", p.blind},
                             {"tests", p.tests.size() + p.merges.size()}});
  for (const FieldRow& r : result.rows) {
    nlohmann::ordered_json k;
    k["name"] = row_name(r), k["control"] = r.mutant == nullptr;
    if (r.mutant) k["class"] = r.mutant->bug_class, k["bug"] = r.mutant->description;
    for (std::size_t p = 0; p < r.opinions.size(); ++p) {
      nlohmann::ordered_json& cell = k["projects"][std::string(field::projects()[p].name)];
      cell = {{"sight", word(r.opinions[p].sight)}, {"tests", r.opinions[p].tests}};
      if (!r.opinions[p].by.empty()) cell["by"] = r.opinions[p].by;
    }
    k["attest"] = {{"law", r.law}, {"checks", r.checks}, {"finding", r.finding}};
    j["kernels"].push_back(k);
  }
  for (std::size_t b = 0; b < field::broken_outputs().size(); ++b) {
    nlohmann::ordered_json& row = j["broken_outputs"][std::string(field::broken_outputs()[b].name)];
    for (std::size_t p = 0; p < result.broken.size(); ++p)
      row[std::string(field::projects()[p].name)] = {{"formats", result.broken[p][b].formats},
                                                     {"accepted", result.broken[p][b].accepted}};
  }
  j["seconds"] = result.seconds;
  return j.dump(1) + "\n";
}

std::string field_markdown(const FieldResult& result, const FieldOptions& o) {
  std::string out = "# Beside the field\n\n";
  out += "The planted bugs of `properties/mutants`, judged by the tests of " +
         std::to_string(field::projects().size()) +
         " suites of other projects and by our laws. Made by\n\n    attest field --seed " + std::to_string(o.seed) +
         " --seeds " + std::to_string(o.seeds) + " --cases " + std::to_string(o.cases) +
         text(" --markdown FILE\n\nin %.0f seconds. ", result.seconds);
  out +=
      R"(Every suite gets its own kind of inputs, its own reference and its own rule (below), in each format that it tests; a
16-bit kernel is not run in fp32. Doubt is for the project: sums of its reference are exact, kernels that split do so in
every test, memory that was never written holds a number of about 1 (NaN where the project fills it so), a merge of
unnormalised states is given the project's pairs (O, LSE) as states.

Scaled down: lengths are about a quarter, as the mutants' tiles (16 x 32) are of a GPU's, with fewer batch entries and
heads; decoding keeps most of its length. An error weighs more with fewer keys, so that this too favours the projects; a
maximum over fewer elements favours nobody. Left out, as our interface refuses them: windows, bias (llama.cpp's finite
mask values), dropout, pages, fp8, ragged queries; and backward passes. Softcap is asked for, so that a kernel which
accepts it is judged. No project tests a step of the online softmax on its own.

Not shown by this: whether the bug would have been found elsewhere, by a model's tests or by users.

```
)";
  out += field_text(result) + "```\n\n## The criteria\n";
  for (const field::Project& p : field::projects()) {
    out += "\n**" + std::string(p.name) + "** (" + std::string(p.column) + ")\n\n";
    const auto item = [&](const char* what, std::string_view value) {
      out += std::string("- ") + what + ": " + std::string(value) + "\n";
    };
    item("read from", p.source), item("inputs", p.inputs), item("reference", p.reference_text);
    item("passes if", p.rule_text), item("blind", p.blind);
    item("tests here", std::to_string(p.tests.size()) + " forward, " + std::to_string(p.merges.size()) + " merges");
  }
  return out;
}

}  // namespace attest
