// One query row of a forward problem: exact inputs and the quantities that truth and bounds share.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/problem.h"

namespace attest {

// Exact values; only visible keys appear, in increasing key order.
struct Row {
  std::int64_t tk = 0;  // keys of the problem, visible or not
  std::int64_t d_qk = 0, d_v = 0;
  double scale = 0;
  const double* q = nullptr;        // [d_qk]
  std::vector<std::int64_t> key;    // [n] global key indices
  std::vector<const double*> k, v;  // [n] pointers to [d_qk], [d_v]
  std::int64_t size() const { return static_cast<std::int64_t>(key.size()); }
};

Row make_row(const Problem& p, std::int64_t batch, std::int64_t q_head, std::int64_t i);

// Working quantities in double (scores accumulated in double-double, then rounded; gaps by exact_gaps() where that is
// not enough). Not certified: the bound inflates itself for their error. A weight exp(-gap) is as good as gap 2^-53,
// about 750 units of 2^-53 where it still counts.
struct RowStats {
  std::vector<double> x;    // q.k_j, unscaled
  std::vector<double> A;    // sum_i |q_i k_ji|
  std::vector<double> gap;  // scale * (m - x_j) >= 0, the difference taken before rounding
  double gap_error = 0;     // absolute, of every gap, but for its own rounding
  std::vector<double> w;    // exp(-gap)
  double m = 0;             // max x
  double W = 0;             // sum w
  double lse = 0;           // scale * m + log W
  std::vector<double> o;    // [d_v]
  bool finite = true;       // every input of the row is finite and no score overflows double
};

RowStats row_stats(const Row& row);

// The same gaps from exact scores, each rounded once; slow. Every input finite, no scale * sum |q k| above 2^1024.
std::vector<double> exact_gaps(const Row& row);

}  // namespace attest
