// The readable forward kernel: one row at a time, keys in blocks and splits, online softmax, LSE merge. It is right
// when bug == Bug::none; every `is(Bug::x)` is one planted bug.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "impl/attention.h"
#include "properties/mutants/bug.h"

namespace attest::mutants {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

struct Forward {
  Forward(Bug planted, const attn_problem& problem);

  // Everything about row i of query head h: its O and LSE are written.
  void row(int64_t b, int64_t h, int64_t i) const;

  Bug bug;
  const attn_problem& p;
  int64_t B, Hq, Hkv, Tq, Tk, dqk, dv, block_q, block_k, splits;
  float scale;

 private:
  // Keys of one block that take part, with their scores q.k.
  struct Block {
    std::vector<float> x;
    std::vector<float> again;  // the scores that P is taken from, where a bug computes them twice
    std::vector<int64_t> key;
  };
  // Running state over the blocks of one split: maximum of the scores, sum of the weights, O before its division.
  struct Partial {
    float m = -kInf, l = 0;
    std::vector<float> acc;
    bool any = false;       // a key was seen
    float m_again = -kInf;  // maximum of Block::again
  };

  bool is(Bug b) const { return bug == b; }

  // forward_masks.cpp: which keys a row sees, and which tiles are visited at all.
  int64_t keys(int64_t b) const;
  int64_t causal_end(int64_t i) const;  // one past the last key that row i may see by causality
  bool visible(int64_t b, int64_t h, int64_t i, int64_t j) const;
  bool skipped(int64_t q0, int64_t j0) const;  // q0: the first row of the query block

  // forward_scores.cpp: addresses, scores, weights.
  int64_t kv_head(int64_t h) const;
  int64_t k_offset(int64_t b, int64_t h, int64_t j, int64_t e) const;
  float value(int64_t b, int64_t h, int64_t j, int64_t e) const;
  float score(int64_t b, int64_t h, int64_t i, int64_t j) const;
  float score_from_the_end(int64_t b, int64_t h, int64_t i, int64_t j) const;
  float weight(float x, float m) const;

  // forward_blocks.cpp: the walk over the blocks of a row, and what each holds.
  std::vector<int64_t> block_starts(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi, int64_t step) const;
  bool neighbour_overflows(int64_t b, int64_t h, int64_t i) const;
  Partial run_keys(int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi) const;

  // forward_softmax.cpp: the online softmax, the end of a split, the merge of splits.
  float rescale(const Partial& s, float m) const;
  void add_block(Partial& s, const Block& block, int64_t b, int64_t h) const;
  void finish(Partial& s, float* o, float* lse) const;
  void merge(std::vector<std::vector<float>>& os, std::vector<float>& lses, float* o, float* lse) const;
};

}  // namespace attest::mutants
