// The record of a study, in Markdown.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "properties/calibration/calibrate.h"

namespace attest::calibration {
namespace {

__attribute__((format(printf, 2, 3))) void line(std::ostream& out, const char* format, ...) {
  char text[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  out << text << "\n";
}

long long whole(std::int64_t n) { return static_cast<long long>(n); }

double caught(const Aggregates& a) {
  const auto n = std::count_if(a.z.begin(), a.z.end(), [&](double z) { return z > a.group->most; });
  return static_cast<double>(n) / static_cast<double>(a.z.size());
}

// Value below which 99 % of the checks lie: what decides about a threshold, unlike the mean.
double upper(const Aggregates& a) {
  std::vector<double> z = a.z;
  std::sort(z.begin(), z.end());
  return z[static_cast<std::size_t>(0.99 * static_cast<double>(z.size() - 1))];
}

void write_thresholds(std::ostream& out, const Study& s) {
  out << "## Thresholds of `unbiased`\n\n"
         "z of one check is the root of the mean of (error / expected standard deviation)^2 over 2,000 outputs or "
         "more.\n"
         "u, mean excess and the normal tail (mean, sd) are fitted to the largest hundredth of all checks of a group. "
         "The\n"
         "rule: the z that this tail exceeds with probability 1e-9, rounded up to a hundredth. `p` is the false-alarm\n"
         "rate of one check at the threshold in use, with the normal tail, and with an exponential one, which is\n"
         "heavier than that of any mean of bounded quantities and stands for \"whatever the tail may be\". Where P and "
         "O are\n"
         "both rounded, z^2 is a mean of that of P and that of the output's rounding, in shares that the shape "
         "decides: its\n"
         "rule is that of \"P kept, O rounded\", and its own fit, of a mixture, is only shown.\n\n"
         "| errors | kernels | outputs | checks | largest z | u | mean excess | tail mean, sd | rule | threshold | p "
         "normal | "
         "p exponential |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Group& g : s.groups)
    line(out, "| %s | %lld | %lld | %zu | %.4f | %.4f | %.4f | %.3f, %.4f | %.4f | **%.2f** | %.1e | %.1e |",
         std::string(g.threshold->errors).c_str(), whole(g.kernels), whole(g.outputs), g.tail.sample, g.most, g.tail.u,
         g.tail.mean_excess, g.tail.mean, g.tail.sd, g.rule.quantile(kFalseAlarm), g.threshold->most,
         g.rule.normal(g.threshold->most), g.rule.exponential(g.threshold->most));
  double normal = 0, exponential = 0;
  for (const Group& g : s.groups) {
    normal = std::max(normal, g.rule.normal(g.threshold->most));
    exponential = std::max(exponential, g.rule.exponential(g.threshold->most));
  }
  line(out,
       "\nA default gate checks `unbiased` on 30 forward kernels with 24 cases each: 720 checks, a false alarm with "
       "probability\n%.1e at most in a run (%.1e if the tail were exponential).\n",
       720 * normal, 720 * exponential);
}

void write_kernels(std::ostream& out, const Study& s) {
  out << "## Kernels under `unbiased`\n\n"
         "| kernel | errors | outputs | checks | mean z | sd | 99 % below | largest | threshold |\n"
         "|---|---|---|---|---|---|---|---|---|\n";
  for (const Aggregates& a : s.aggregates) {
    if (!a.unbound.empty()) continue;
    line(out, "| %s | %s | %lld | %zu | %.4f | %.4f | %.4f | %.4f | %.2f |", a.kernel.c_str(),
         std::string(a.group->errors).c_str(), whole(a.outputs), a.z.size(), a.mean(), a.sd(), upper(a), a.most(),
         a.group->most);
  }
  out << "\nNot bound:\n\n";
  std::string last;
  for (const Aggregates& a : s.aggregates) {
    if (a.unbound.empty() || a.kernel == last) continue;
    line(out, "- %s: %s", a.kernel.c_str(), a.unbound.c_str());
    last = a.kernel;
  }
  out << "\n";
}

void write_power(std::ostream& out, const Study& s) {
  out << "## Power of `unbiased`\n\n"
         "FlashAttention-2 in bf16 with P in bf16. Share of single checks that fail; and the chance that 24 checks, of "
         "which\n86 % see O before it is rounded, hold at least one failure.\n\n"
         "| bias | mean z, O kept | caught | mean z, O rounded | caught | in 24 checks |\n|---|---|---|---|---|---|\n";
  for (const Power& p : s.powers) {
    const double k = caught(p.kept), r = caught(p.rounded);
    line(out, "| %s | %.3f | %.3f | %.3f | %.3f | %.4f |", p.bias.c_str(), p.kept.mean(), k, p.rounded.mean(), r,
         1 - std::pow(1 - (0.86 * k + 0.14 * r), 24));
  }
  out << "\n";
}

void write_expected(std::ostream& out, const Study& s) {
  line(
      out,
      "## The law `expected`\n\nOutputs before output rounding whose error is beyond lambda times the spread S alone "
      "(the drift is left out),\nof %lld; and what the bound, 2 exp(-lambda^2 / 2), allows. Largest multiple: %.3f.\n\n"
      "| lambda | outputs beyond | share | allowed |\n|---|---|---|---|",
      whole(s.spread.outputs), s.spread.most);
  for (std::size_t i = 0; i < kLambdas.size(); ++i)
    line(out, "| %.1f | %lld | %.2e | %.2e |", kLambdas[i], whole(s.spread.beyond[i]),
         static_cast<double>(s.spread.beyond[i]) / static_cast<double>(s.spread.outputs),
         std::min(1.0, 2 * std::exp(-kLambdas[i] * kLambdas[i] / 2)));
  out << "\nA gate takes lambda = sqrt(2 ln(2 M / p)) with M at least 1e9 and p = 1e-6: 8.39 or more, one false alarm "
         "in "
         "a million\nruns if every error used up its spread. Cases drawn as the law draws them, at lambda = 8, O and "
         "LSE:\n\n"
         "| kernel | cases | outputs | failures | largest error/bound |\n|---|---|---|---|---|\n";
  std::int64_t outputs = 0;
  for (const Tier& t : s.tiers) {
    outputs += t.outputs;
    if (t.unbound.empty())
      line(out, "| %s | %lld | %lld | %lld | %.4f |", t.kernel.c_str(), whole(t.cases), whole(t.outputs),
           whole(t.failures), t.worst);
  }
  line(out, "\n%lld outputs.", whole(outputs));
}

}  // namespace

void write(std::ostream& out, const Study& s) {
  line(out, "Seed %llu, %lld outputs at least for each group.\n", static_cast<unsigned long long>(s.options.seed),
       whole(s.options.outputs));
  write_thresholds(out, s);
  write_power(out, s);
  write_expected(out, s);
  out << "\n";
  write_kernels(out, s);
}

}  // namespace attest::calibration
