// scales, shifts: two exact symmetries of softmax(q k) v.
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

// Where multiplying V by 2^k commutes with every rounding: nothing that is computed from V is subnormal or overflows,
// before or after. Cancelled partial sums are multiples of 2^-p of their terms, hence the margin.
bool commutes(const Evaluated& row, const attn_contract& contract, DType storage, DType out, std::int64_t e, double got,
              int k) {
  const FormatFacts acc = facts(dtype_of(contract.acc_dtype)), in = facts(storage), o = facts(out);
  const double factor = std::ldexp(1.0, k), low = std::min(1.0, factor), high = std::max(1.0, factor);
  const auto normal = [](const FormatFacts& f, double x, double low_factor, double high_factor) {
    return x == 0 || (x * low_factor >= std::ldexp(1.0, f.min_exponent) && x * high_factor <= f.max / 2);
  };
  // The smallest normal number may be a subnormal one rounded up, and 0 one rounded down.
  if (std::abs(got) * low == std::ldexp(1.0, o.min_exponent) || !normal(o, std::abs(got), low, high)) return false;
  const double margin = std::ldexp(1.0, -acc.precision - 2);
  double total = 0;
  for (std::size_t j = 0; j < row.row.v.size(); ++j) {
    const double v = std::abs(row.row.v[j][e]);
    if (!normal(in, v, low, high)) return false;
    if (v == 0) continue;
    // The true weight relative to the final maximum, less its errors, is the smallest that the key ever has. A product
    // that underflows in double may stay subnormal in the kernel, but for weights which are 0 in any format.
    const double least = v * row.stats.w[j] * margin / 4 * std::exp(-row.bound.log_error);
    if (least > 0 ? !normal(acc, least, low, 1) : row.stats.gap[j] - row.bound.log_error < 800) return false;
    total += v;
  }
  if (got == 0 && total > 0 && out != dtype_of(contract.acc_dtype)) return false;
  return total * high * 4 <= acc.max && std::isfinite(total);
}

CheckResult check_scales(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Case base = frozen(c, kernel);
  if (base.values.tensors.count("v") == 0) return Tally().finish("the problem has no values");
  const Run a = run_case(kernel, base);
  if (!a.ok()) return stopped(a.execution);
  const bool bitwise = promises(kernel, ATTN_PROMISE_DETERMINISTIC);
  Random random = choices(context, c, 0x7363616c);
  const DType storage = formats_for(kernel).storage;
  Tally tally;
  for (const int k : {static_cast<int>(random.between(1, 3)), static_cast<int>(-random.between(1, 6))}) {
    Case scaled = base;
    for (double& v : scaled.values.tensors.at("v").literal) v = std::ldexp(v, k);
    const Run b = run_case(kernel, scaled);
    if (!b.ok()) return stopped(b.execution);
    const auto oa = a.problem.output("o"), ob = b.problem.output("o");
    for (const RowIndex& at : judged_rows(a.problem, context)) {
      const Evaluated row = evaluate_row(kernel, a.problem, at);
      // V that overflows at a key which only others see: 0 * inf.
      if (row.anything || reached_by_head(kernel, b.problem, at)) continue;
      for (std::int64_t e = 0; e < c.shape.d_v; ++e) {
        const std::int64_t n = o_index(a.problem, at, e);
        if (!commutes(row, kernel.abi->contract, storage, a.problem.out_dtype(), e, oa[n], k)) continue;
        const double want = std::ldexp(oa[n], k);
        const auto where = [&] { return place(at, e) + " with V times 2^" + std::to_string(k); };
        if (!bitwise)
          within_both(tally, ob[n], std::ldexp(row.bound.o[e].deterministic, k), want,
                      std::ldexp(row.bound.o[e].deterministic, k), 0, where);
        else if (ob[n] == want)
          tally.note(Verdict::pass, "");
        else
          tally.fail(where(), "must be O times the same power of two, bit for bit", ob[n], want);
      }
    }
  }
  return tally.finish("no element stays normal throughout");
}

CheckResult check_shifts(const Case& c, const Kernel& kernel, const LawContext& context) {
  Case base = frozen(c, kernel);
  if (base.values.tensors.count("q") == 0 || base.values.tensors.count("k") == 0)
    return Tally().finish("the problem has no rows or no keys");
  // A power of two, and coordinate 0 of q and k given to the shift: scale * 1 * c is exact.
  base.scale = std::exp2(std::round(std::log2(c.effective_scale())));
  auto& q = base.values.tensors.at("q").literal;
  for (std::size_t n = 0; n < q.size(); n += c.shape.d_qk) q[n] = 1;
  const auto with_first = [&](double first) {
    Case x = base;
    auto& k = x.values.tensors.at("k").literal;
    for (std::size_t n = 0; n < k.size(); n += c.shape.d_qk) k[n] = first;
    return x;
  };
  const Run a = run_case(kernel, with_first(0));
  if (!a.ok()) return stopped(a.execution);
  Random random = choices(context, c, 0x73686966);
  Tally tally;
  for (int turn = 0; turn < 2; ++turn) {
    const double first = std::ldexp(random.chance(0.5) ? 1.0 : -1.0, static_cast<int>(random.between(-2, 11)));
    const double shift = *base.scale * first;
    const Run b = run_case(kernel, with_first(first));
    if (!b.ok()) return stopped(b.execution);
    const auto oa = a.problem.output("o"), ob = b.problem.output("o");
    const bool has_lse = a.problem.has_output("lse");
    const auto la = has_lse ? a.problem.output("lse") : std::vector<double>{};
    const auto lb = has_lse ? b.problem.output("lse") : std::vector<double>{};
    const double per_unit = kernel.abi->contract.lse_base == ATTN_LSE_BASE_2 ? 1 / std::log(2.0) : 1;
    for (const RowIndex& at : judged_rows(a.problem, context)) {
      const Evaluated ra = evaluate_row(kernel, a.problem, at), rb = evaluate_row(kernel, b.problem, at);
      if (ra.row.size() == 0) continue;
      for (std::int64_t e = has_lse ? -1 : 0; e < c.shape.d_v; ++e) {
        const auto where = [&] { return place(at, e) + " with scores shifted by " + std::to_string(shift); };
        const std::int64_t n = e < 0 ? lse_index(a.problem, at) : o_index(a.problem, at, e);
        const double got_a = e < 0 ? la[n] : oa[n], got_b = e < 0 ? lb[n] : ob[n];
        // Subtracting two outputs rounds once more.
        const double rounding = e < 0 ? 0x1p-52 * (std::abs(got_a) + std::abs(got_b)) : 0;
        within_both(tally, got_b, (e < 0 ? rb.bound.lse : rb.bound.o[e]).deterministic, got_a,
                    (e < 0 ? ra.bound.lse : ra.bound.o[e]).deterministic + rounding, e < 0 ? shift * per_unit : 0,
                    where);
      }
    }
  }
  return tally.finish("no row sees a key");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random, 16);
}

void shape_wide(Case& c, Random& random) {
  shape(c, random);
  at_least(c.shape.d_qk, 2, random, 10);
}

}  // namespace

Law scales_law() {
  return {"scales",
          "V times 2^k gives O times 2^k bit for bit, where every nonzero p*v and V stay normal before and after.",
          why_not_forward, check_scales, shape};
}

Law shifts_law() {
  return {"shifts", "A common shift of a row's scores moves LSE by it and leaves O, within both bounds.",
          why_not_forward, check_shifts, shape_wide};
}

}  // namespace attest
