#include "impl/validate.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "impl/reject.h"

namespace attn {

namespace {

// A scratch size is a sum of products of three extents and 8 bytes at most.
constexpr std::int64_t largest_elements = INT64_C(1) << 56;

bool check_scale(Refusal& r, double scale, std::int32_t accumulator) {
  if (!(scale > 0) || !std::isfinite(scale))
    return r.refuse("scale is %g (%a); it must be finite and positive", scale, scale);
  if (accumulator == ATTN_FP32) {
    const float narrowed = static_cast<float>(scale);
    if (!(narrowed >= std::numeric_limits<float>::min()) || !std::isfinite(narrowed))
      return r.refuse("scale %g leaves the normal range of fp32, in which this kernel uses it: use an fp64 kernel",
                      scale);
  }
  return true;
}

bool check_additive_entries(Refusal& r, const attn_tensor& t) {
  std::int64_t extent[4];  // a broadcast axis repeats the same elements
  for (int a = 0; a < 4; ++a) extent[a] = t.stride[a] == 0 ? (t.shape[a] > 0) : t.shape[a];
  const float* data = static_cast<const float*>(t.data);
  for (std::int64_t b = 0; b < extent[0]; ++b)
    for (std::int64_t h = 0; h < extent[1]; ++h)
      for (std::int64_t i = 0; i < extent[2]; ++i) {
        const float* row = data + b * t.stride[0] + h * t.stride[1] + i * t.stride[2];
        for (std::int64_t j = 0; j < extent[3]; ++j) {
          const float x = row[j * t.stride[3]];
          if (!(x == 0 || x == -std::numeric_limits<float>::infinity()))
            return r.refuse("additive mask holds %g at [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                            "]; only 0 and -inf are supported, anything else is a bias",
                            static_cast<double>(x), b, h, i, j);
        }
      }
  return true;
}

bool check_mask(Refusal& r, const attn_problem& p, const Requirements& needs, Reads reads) {
  const attn_mask& mask = p.mask;
  const std::int64_t batch = p.q.shape[0], heads = p.q.shape[1], tq = p.q.shape[2], tk = p.k.shape[2];
  if (mask.causal != ATTN_CAUSAL_NONE && mask.causal != ATTN_CAUSAL_TOP_LEFT && mask.causal != ATTN_CAUSAL_BOTTOM_RIGHT)
    return r.refuse("mask.causal is %d; known are 0 (none), 1 (top-left), 2 (bottom-right)",
                    static_cast<int>(mask.causal));
  if (needs.needs_causal && mask.causal == ATTN_CAUSAL_NONE)
    return r.refuse("this kernel needs a causal mask: set mask.causal, or use an fa2 kernel");
  if (mask.window_left != -1 || mask.window_right != -1)
    return r.refuse("sliding windows are reserved and not supported: set window_left and window_right to -1");
  for (std::int64_t b = 0; reads != Reads::nothing && mask.kv_len && b < batch; ++b)
    if (mask.kv_len[b] < 0 || mask.kv_len[b] > tk)
      return r.refuse("kv_len[%" PRId64 "] is %" PRId64 ", outside of 0..%" PRId64, b, mask.kv_len[b], tk);
  if (mask.visible.data && !r.check_tensor("mask.visible", mask.visible, ATTN_U8, {batch, heads, tq, tk})) return false;
  if (!mask.additive.data) return true;
  if (!r.check_tensor("mask.additive", mask.additive, ATTN_FP32, {batch, heads, tq, tk})) return false;
  return reads != Reads::entries || check_additive_entries(r, mask.additive);
}

// Names of a state's tensors for messages.
struct StateNames {
  const char *m, *l, *acc;
};
constexpr StateNames names_of_a{"a.m", "a.l", "a.acc"}, names_of_b{"b.m", "b.l", "b.acc"},
    names_of_out{"out.m", "out.l", "out.acc"};

bool check_state(Refusal& r, const StateNames& names, const attn_state& state, const Requirements& needs,
                 std::int64_t rows, std::int64_t d_v, bool output) {
  const auto check = [&](const char* what, const attn_tensor& t, std::initializer_list<std::int64_t> shape) {
    return output ? r.check_output(what, t, needs.accumulator, shape)
                  : r.check_tensor(what, t, needs.accumulator, shape);
  };
  if (!check(names.m, state.m, {rows})) return false;
  if (needs.state_kind != ATTN_STATE_OLSE && !check(names.l, state.l, {rows})) return false;
  return needs.state_kind == ATTN_STATE_ML || check(names.acc, state.acc, {rows, d_v});
}

bool check_kind(Refusal& r, const attn_problem& p, const Requirements& needs) {
  if (p.state_kind != needs.state_kind)
    return r.refuse("state_kind is %d, this kernel takes %d (1: m, l; 2: m, l, acc; 3: O and LSE)",
                    static_cast<int>(p.state_kind), static_cast<int>(needs.state_kind));
  return true;
}

// Each output tensor of `out` against each tensor of the inputs and against its own companions.
bool check_states_apart(Refusal& r, const attn_state& out, std::initializer_list<const attn_tensor*> inputs) {
  const attn_tensor* outputs[] = {&out.m, &out.l, &out.acc};
  for (int a = 0; a < 3; ++a) {
    for (const attn_tensor* in : inputs)
      if (!r.check_apart("out", *outputs[a], "an input", *in)) return false;
    for (int b = 0; b < a; ++b)
      if (!r.check_apart("out", *outputs[a], "another part of out", *outputs[b])) return false;
  }
  return true;
}

bool forward_ok(Refusal& r, const attn_problem& p, const Requirements& needs, Reads reads) {
  if (!r.check_header(p, ATTN_OP_FORWARD) || !r.check_tiling(p.tiling)) return false;
  const attn_tensor &q = p.q, &k = p.k, &v = p.v;
  if (q.rank != 4 || k.rank != 4 || v.rank != 4)
    return r.refuse("q, k, v have ranks %d, %d, %d; each must be 4: batch, head, row, element",
                    static_cast<int>(q.rank), static_cast<int>(k.rank), static_cast<int>(v.rank));
  const std::int64_t batch = q.shape[0], heads = q.shape[1], tq = q.shape[2], d_qk = q.shape[3];
  const std::int64_t kv_heads = k.shape[1], tk = k.shape[2], d_v = v.shape[3];
  if (!r.check_tensor("q", q, needs.storage, {batch, heads, tq, d_qk}) ||
      !r.check_tensor("k", k, needs.storage, {batch, kv_heads, tk, d_qk}) ||
      !r.check_tensor("v", v, needs.storage, {batch, kv_heads, tk, d_v}))
    return false;
  if (heads > 0 && (kv_heads == 0 || heads % kv_heads != 0))
    return r.refuse("%" PRId64 " query heads cannot share %" PRId64
                    " kv heads evenly: the number of query heads must be a multiple of the number of kv heads",
                    heads, kv_heads);
  const std::int32_t o_type = p.o.dtype == needs.accumulator ? needs.accumulator : needs.storage;
  if (!r.check_output("o", p.o, o_type, {batch, heads, tq, d_v})) return false;
  if (p.lse.data && !r.check_output("lse", p.lse, needs.accumulator, {batch, heads, tq})) return false;
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(batch, heads, &elements) ||
      __builtin_mul_overflow(elements, std::max(tq, tk), &elements) ||
      __builtin_mul_overflow(elements, d_qk + d_v + 16, &elements) || elements > largest_elements)
    return r.refuse("the problem has more than 2^56 elements: check its shape");
  if (!check_scale(r, p.scale, needs.accumulator)) return false;
  if (!(p.softcap == 0)) return r.refuse("softcap is reserved and not supported: leave it 0");
  if (!r.check_absent("bias", p.bias) || !r.check_absent("sinks", p.sinks)) return false;
  if (!check_mask(r, p, needs, reads)) return false;
  for (const attn_tensor* in : {&q, &k, &v, &p.mask.visible, &p.mask.additive})
    if (!r.check_apart("o", p.o, "an input", *in) || !r.check_apart("lse", p.lse, "an input", *in)) return false;
  return r.check_apart("o", p.o, "lse", p.lse);
}

}  // namespace

std::int32_t validate_forward(const attn_problem& p, const Requirements& needs, Reads reads, char* why,
                              std::size_t why_size) {
  Refusal r(why, why_size);
  forward_ok(r, p, needs, reads);
  return r.status();
}

std::int32_t validate_step(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size) {
  Refusal r(why, why_size);
  const std::int64_t rows = p.scores.shape[0], keys = p.scores.shape[1];
  const bool values = needs.state_kind == ATTN_STATE_MLA;
  const std::int64_t d_v = values && p.v.rank == 2 ? p.v.shape[1] : 0;
  if (r.check_header(p, ATTN_OP_STEP) && check_kind(r, p, needs) && r.check_tiling(p.tiling) &&
      r.check_tensor("scores", p.scores, needs.accumulator, {rows, keys}) &&
      (!values || r.check_tensor("v", p.v, needs.storage, {keys, d_v})) &&
      check_state(r, names_of_a, p.a, needs, rows, d_v, false) &&
      check_state(r, names_of_out, p.out, needs, rows, d_v, true))
    check_states_apart(r, p.out, {&p.a.m, &p.a.l, &p.a.acc, &p.scores, &p.v});
  return r.status();
}

std::int32_t validate_merge(const attn_problem& p, const Requirements& needs, char* why, std::size_t why_size) {
  Refusal r(why, why_size);
  const std::int64_t rows = p.out.m.shape[0];
  const std::int64_t d_v = p.out.acc.rank == 2 ? p.out.acc.shape[1] : 0;
  if (r.check_header(p, ATTN_OP_MERGE) && check_kind(r, p, needs) && r.check_tiling(p.tiling) &&
      check_state(r, names_of_a, p.a, needs, rows, d_v, false) &&
      check_state(r, names_of_b, p.b, needs, rows, d_v, false) &&
      check_state(r, names_of_out, p.out, needs, rows, d_v, true))
    check_states_apart(r, p.out, {&p.a.m, &p.a.l, &p.a.acc, &p.b.m, &p.b.l, &p.b.acc});
  return r.status();
}

}  // namespace attn
