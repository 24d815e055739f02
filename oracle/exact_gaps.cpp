// Gaps of scores so large that differences which count lie below the last digit of a pair of doubles. A score is at
// most 2^1024 here, scale included; 1130 bits leave 2^-106 of an exp's argument, times the terms of a dot product.
#include <algorithm>
#include <boost/multiprecision/mpfr.hpp>
#include <limits>

#include "oracle/row.h"

namespace attest {
namespace {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::mpfr_float_backend<340, mp::allocate_stack>, mp::et_off>;  // digits10

}  // namespace

std::vector<double> exact_gaps(const Row& row) {
  std::vector<Real> score(row.key.size());
  for (std::size_t j = 0; j < score.size(); ++j)
    for (std::int64_t i = 0; i < row.d_qk; ++i) score[j] += Real(row.q[i]) * row.k[j][i];
  const Real top = *std::max_element(score.begin(), score.end()), most = std::numeric_limits<double>::max();
  std::vector<double> gap(score.size());
  for (std::size_t j = 0; j < score.size(); ++j) {
    const Real wide = (top - score[j]) * row.scale;
    gap[j] = static_cast<double>(wide < most ? wide : most);
  }
  return gap;
}

}  // namespace attest
