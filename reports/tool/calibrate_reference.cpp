#include "reports/tool/calibrate_reference.h"

#include <mpfr.h>

#include <cmath>

#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr int precision = 200;

class Number {
 public:
  Number() { mpfr_init2(value_, precision); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

void apply(cal::Function f, mpfr_ptr result, mpfr_ptr x) {
  switch (f) {
    case cal::Function::exp2_flushed:
    case cal::Function::exp2_approx:
    case cal::Function::exp2_gradual:
      mpfr_exp2(result, x, MPFR_RNDN);
      break;
    case cal::Function::exp:
    case cal::Function::exp_shared:
      mpfr_exp(result, x, MPFR_RNDN);
      break;
    case cal::Function::log:
      mpfr_log(result, x, MPFR_RNDN);
      break;
    case cal::Function::log2_approx:
      mpfr_log2(result, x, MPFR_RNDN);
      break;
    default:
      mpfr_ui_div(result, 1, x, MPFR_RNDN);
  }
}

}  // namespace

double exact_relative_error(cal::Function f, std::uint32_t input, std::uint32_t output) {
  Number x, r, error;
  mpfr_set_flt(x, attn::bits_as<float>(input), MPFR_RNDN);
  apply(f, r, x);
  if (mpfr_zero_p(static_cast<mpfr_ptr>(r))) return 0;
  mpfr_set_flt(error, attn::bits_as<float>(output), MPFR_RNDN);
  mpfr_sub(error, error, r, MPFR_RNDN);
  mpfr_div(error, error, r, MPFR_RNDN);
  return std::ldexp(mpfr_get_d(error, MPFR_RNDN), 24);
}

ReferenceCheck check_reference(const std::vector<FunctionFacts>& functions) {
  ReferenceCheck check;
  const auto look = [&](cal::Function f, const cal::Extreme& e, double measured) {
    if (e.size == 0) return;
    ++check.inputs;
    double off = std::fabs(exact_relative_error(f, e.input, e.output) - measured) / std::fmax(1, e.size);
    if (std::isnan(off)) off = HUGE_VAL;
    if (off <= check.worst) return;
    check.worst = off;
    check.where = text("%s at %08x", std::string(name(f)).c_str(), e.input);
  };
  for (const FunctionFacts& facts : functions)
    for (const cal::Tally& t : facts.binades) {
      look(facts.function, t.above, t.above.size);
      look(facts.function, t.below, -t.below.size);
    }
  return check;
}

}  // namespace attest
