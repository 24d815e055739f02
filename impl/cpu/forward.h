// The forward families. Each visits tiles in its own order; query_block.h does the arithmetic.
#pragma once

#include <cstddef>

#include "impl/attention.h"
#include "impl/cpu/formats.h"
#include "impl/validate.h"

namespace attn {

template <class F, bool Causal = false>
struct ForwardKernel {
  using Format = F;
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static Requirements needs() { return {dtype_of<typename F::Storage>, dtype_of<typename F::Acc>, Causal, 0}; }
};

// Three passes over a row: its maximum; weights and their sum; P.V and one division. Scores are computed in the first
// two and never stored whole. No rescaling, so the tiling changes no bit.
template <class F>
struct Standard : ForwardKernel<F> {
  static std::size_t workspace(const attn_problem& p);
  static void compute(const attn_problem& p, void* workspace);
};

// FlashAttention-1 (Dao et al., arXiv 2205.14135): keys outside, queries inside, O normalised at every block; l, m and
// O live in memory between blocks.
template <class F>
struct Fa1 : ForwardKernel<F> {
  static std::size_t workspace(const attn_problem& p);
  static void compute(const attn_problem& p, void* workspace);
};

// FlashAttention-2 (Dao, arXiv 2307.08691): queries outside, keys inside, one division at the end.
template <class F>
struct Fa2 : ForwardKernel<F> {
  static std::size_t workspace(const attn_problem& p);
  static void compute(const attn_problem& p, void* workspace);
};

// FlashAttention-2 for causal masks: full tiles first, without a look at the mask, then the partial ones; tiles beyond
// the diagonal are never visited. Query blocks are paired, early with late, so that threads get equal work.
template <class F>
struct Causal : ForwardKernel<F, true> {
  static std::size_t workspace(const attn_problem& p);
  static void compute(const attn_problem& p, void* workspace);
};

// Flash-Decoding: the keys are cut into splits, each gives a partial O and LSE, which are merged by LSE.
template <class F>
struct Decode : ForwardKernel<F> {
  static std::size_t workspace(const attn_problem& p);
  static void compute(const attn_problem& p, void* workspace);
};

}  // namespace attn
