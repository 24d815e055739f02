// A forward problem as device code sees it: a plain struct that is passed to kernels by value. Offsets are 64-bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "impl/attention.h"
#include "impl/core/online_softmax.h"
#include "impl/core/tile_schedule.h"

namespace attn {

// Strides in elements of the axes batch, head, row, element.
struct View {
  void* data;
  Index stride[4];

  explicit View(const attn_tensor& t)
      : data(t.data), stride{t.stride[0], t.stride[1], t.stride[2], t.rank > 3 ? t.stride[3] : 0} {}

  template <class T>
  __device__ T* row(Index batch, Index head, Index i) const {
    return static_cast<T*>(data) + batch * stride[0] + head * stride[1] + i * stride[2];
  }
};

struct ForwardView {
  View q, k, v, o, lse, visible, additive;  // data is null where absent
  const Index* kv_len;                      // null: all keys
  Index batch, q_heads, kv_heads, tq, tk, d_qk, d_v;
  float scale;
  CausalAlignment causal;
  bool o_is_fp32;  // else o is in the input format

  explicit ForwardView(const attn_problem& p)
      : q(p.q),
        k(p.k),
        v(p.v),
        o(p.o),
        lse(p.lse),
        visible(p.mask.visible),
        additive(p.mask.additive),
        kv_len(p.mask.kv_len),
        batch(p.q.shape[0]),
        q_heads(p.q.shape[1]),
        kv_heads(p.k.shape[1]),
        tq(p.q.shape[2]),
        tk(p.k.shape[2]),
        d_qk(p.q.shape[3]),
        d_v(p.v.shape[3]),
        scale(static_cast<float>(p.scale)),
        causal(p.mask.causal == ATTN_CAUSAL_TOP_LEFT       ? CausalAlignment::top_left
               : p.mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT ? CausalAlignment::bottom_right
                                                           : CausalAlignment::none),
        o_is_fp32(p.o.dtype == ATTN_FP32) {}

  __device__ Index kv_head(Index q_head) const { return q_head / (q_heads / kv_heads); }

  // A kv_len outside of 0..Tk is cut to it.
  __device__ Visibility visibility(Index b) const {
    return {tq, tk, kv_len ? larger(0, smaller(kv_len[b], tk)) : tk, causal};
  }

  __host__ __device__ bool tensor_masked() const { return visible.data || additive.data; }

  // Score of a key that Visibility lets through, after the tensor masks: -inf where they hide it, NaN where the
  // additive mask holds anything but 0 and -inf.
  __device__ float masked(float score, Index b, Index h, Index i, Index j) const {
    if (visible.data && !visible.row<std::uint8_t>(b, h, i)[j * visible.stride[3]]) return neg_infinity<float>;
    if (additive.data) {
      const float bias = additive.row<float>(b, h, i)[j * additive.stride[3]];
      if (bias == neg_infinity<float>) return bias;
      if (bias != 0.0f) return __int_as_float(0x7fffffff);
    }
    return score;
  }
};

}  // namespace attn
