// States (m, l, acc) of step and merge as values, and their judgement. What the laws of step and merge are made of.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "properties/evaluate.h"

namespace attest {

// Values of `rows` states, exact. l is empty for olse, acc for ml.
struct StateValues {
  std::int64_t rows = 0, d_v = 0;
  std::vector<double> m, l, acc;
  const double* acc_row(std::int64_t r) const { return acc.empty() ? nullptr : acc.data() + r * d_v; }
};

// Reads a state through the view that the kernel gets.
StateValues read_state(const attn_state& state);
StateValues output_state(const Problem& problem);

// The inputs of a step problem, row by row.
struct StepInputs {
  explicit StepInputs(const Problem& problem);
  // Row r over keys begin..end, from the problem's own state.
  StepRow row(std::int64_t r, std::int64_t begin, std::int64_t end) const;

  std::int64_t rows, keys, d_v;  // d_v = 0 for ml
  StateValues initial;
  std::vector<double> scores, v;  // [rows, keys], [keys, d_v]
};

MergeRow merge_row(StateKind kind, std::initializer_list<const StateValues*> parts, std::int64_t r);
MergeSide merge_side(StateKind kind, const StateValues& s, std::int64_t r, StateBound error);
StateBound exact_state(std::int64_t d_v);

// Judges m, l and acc of row r, escalating the oracle where they need it.
void judge_state(Tally& tally, const StateValues& got, std::int64_t r, const StateBound& bound,
                 const std::function<StateTruth(Tier)>& truth);

// hi + lo, or the value that stands for the class.
double truth_value(const TruthElement& t);

// A step or merge problem's tensors written over: case values that hold exactly these numbers.
void set_literal(Case& c, const std::string& tensor, std::vector<double> values);

}  // namespace attest
