// Short ways to write a project's configurations down.
#pragma once

#include <string>
#include <vector>

#include "properties/field/field.h"

namespace attest::field {

struct Dims {
  std::int64_t batch, q_heads, kv_heads, tq, tk, d;
  std::int64_t d_v = 0;  // 0: as d
};

// Tensors [batch, head, row, column], dense; scale 1 / sqrt(d); O in the format of the inputs.
Test forward(DType format, Dims dims, Causal causal, Fill fill);

// [batch, row, head, column] in memory: how most projects keep q, k, v and O.
Test heads_inside(Test t);
Test with_kv_len(Test t, std::vector<std::int64_t> kv_len);
Test with_scale(Test t, double scale);
Test with_softcap(Test t, double cap);
Test with_splits(Test t, std::int64_t splits);
Test without_lse(Test t);
Test with_rule(Test t, Rule rule);
Test with_runs(Test t, int runs, bool same_bits);

// Masks by a rule, [1, 1, tq, tk].
using Sees = bool (*)(std::int64_t i, std::int64_t j, std::int64_t tq, std::int64_t tk);
Test with_visible(Test t, Sees sees);
Test with_additive(Test t, Sees sees);

// The same configurations in several formats.
std::vector<Test> in_formats(const std::vector<Test>& tests, const std::vector<DType>& formats);

// "fp16 1x6/2 113x203 d64 bottom-right": what a report calls it.
std::string describe(const Test& t);

}  // namespace attest::field
