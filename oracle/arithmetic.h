// What a Contract promises, in the numbers that bounds are made of. Internal to the bounds (oracle/BOUNDS.md).
#pragma once

#include <cmath>
#include <cstdint>

#include "oracle/bound.h"

namespace attest {

// Relative errors count absolutely here (no longer in u); logarithmic errors bound |log(1 + error)|.
struct Arithmetic {
  // scale: of the problem. A Contract that narrows it loses nothing where the accumulator format holds it already.
  explicit Arithmetic(const attn_contract& contract, double scale = 1);

  const attn_contract& contract;
  double u;                                // unit roundoff of the accumulator format
  double phi;                              // absolute error of one operation that underflows
  double min_normal;                       // of the accumulator format
  double overflow;                         // magnitudes at or beyond this round to infinity
  double exp_log, rescale_log, merge_log;  // exp of an element, of a rescale, of a merge weight
  double exp_floor;                        // absolute error of an exp below the normal range
  double division;
  bool p_rounded;
  double p_u, p_floor, p_overflow;  // rounding of P; u and floor are 0 when it is kept in the accumulator format
  double narrowed;                  // u when the scale is rounded to the accumulator format, else 0
  double gap_error;                 // error of c2 against s log2 e, and of a narrowed scale: times the gap
  double element_rounding, rescale_rounding;  // roundings of the argument, in u of the gap
  double offset_units;                        // u of s |m| by which the arguments of one frame are shifted
  double lse_units;                           // u of s |m| that s m + log l adds
  double lazy;                                // threshold of lazy rescaling in natural log units, else 0

  // |computed - x| <= dot_relative(d) A + dot_floor(d) for a raw score of d products.
  double dot_relative(std::int64_t d) const;
  double dot_floor(std::int64_t d) const;
  // The same for n products of P and V in `steps` tensor-core steps (ignored otherwise) with `rescales` products.
  double pv_relative(std::int64_t n, std::int64_t steps, std::int64_t rescales) const;
  double pv_floor(std::int64_t n, std::int64_t steps) const;
  double log_error(double log_l) const;

 private:
  double mma_relative(std::int64_t terms, std::int64_t steps) const;
  double mma_floor(std::int64_t steps) const;
  double scalar_floor(std::int64_t n, std::int32_t accumulation) const;
};

// k roundings of relative size u each: (1 + u)^k - 1 <= ku / (1 - ku); +inf when ku >= 1.
inline double gamma_of(double ku) { return ku < 1 ? ku / (1 - ku) : HUGE_VAL; }

// (1 + a)(1 + b) - 1 without its cancellation: 1 + 2^-53 is 1 in double, and fp64 kernels have bounds too.
inline double compound(double a, double b) { return a + b + a * b; }

// Half a unit in the last place of the binade of y: the error of rounding a value of at most |y| to the format.
double half_ulp(DType format, double y);

// half_ulp, or what is lost when results below the normal range become 0.
double output_rounding(const attn_contract& contract, DType out, double y);

// Magnitude from which rounding to the format gives infinity.
double overflow_threshold(DType format);

}  // namespace attest
