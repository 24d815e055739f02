#include "fuzz/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "oracle/recipe.h"

namespace attest::fuzz {
namespace {

Shape decode_shape(Bytes& bytes) {
  Shape s;
  // The shortest input still has rows and keys to check.
  s.tq = bytes.between(0, 40, 3);
  s.tk = bytes.between(0, 40, 5);
  s.d_qk = bytes.between(1, 16, 2);
  s.d_v = bytes.between(1, 16, 2);
  s.batch = bytes.between(1, 2);
  s.kv_heads = bytes.between(1, 2);
  s.q_heads = s.kv_heads * bytes.between(1, 3);
  return s;
}

Tiling decode_tiling(Bytes& bytes) {
  Tiling t;
  t.block_q = bytes.between(0, 48);  // 0 leaves it to the kernel; beyond 40 the block exceeds the sequence
  t.block_k = bytes.between(0, 48);
  t.splits = bytes.between(0, 8);
  t.threads = static_cast<std::int32_t>(bytes.between(1, 3));
  return t;
}

MaskTensor decode_mask_tensor(Bytes& bytes, const Shape& shape) {
  MaskTensor m;
  const auto& patterns = mask_patterns();
  const std::size_t choice = bytes.index(patterns.size() + 1);
  if (choice == 0) return m;
  m.pattern = std::string(patterns[choice - 1]);
  m.seed = bytes.byte();
  m.density = static_cast<double>(bytes.byte()) / 255;
  // Any axis may be broadcast; a mask of the full shape is the common one.
  const std::uint8_t broadcast = bytes.byte();
  if (broadcast & 1) {
    m.mask_shape = {shape.batch, shape.q_heads, shape.tq, shape.tk};
    for (int axis = 0; axis < 4; ++axis)
      if (broadcast >> (axis + 1) & 1) m.mask_shape[static_cast<std::size_t>(axis)] = 1;
  }
  return m;
}

Mask decode_mask(Bytes& bytes, const Shape& shape) {
  Mask m;
  const std::uint8_t kinds = bytes.byte();
  m.causal = static_cast<Causal>((kinds & 3) % 3);
  if (kinds & 4)
    for (std::int64_t b = 0; b < shape.batch; ++b) m.kv_len.push_back(bytes.between(0, shape.tk));
  if (kinds & 8) m.visible = decode_mask_tensor(bytes, shape);
  if (kinds & 16) m.additive = decode_mask_tensor(bytes, shape);
  return m;
}

Layout decode_layout(Bytes& bytes) {
  Layout l;
  const std::uint8_t choice = bytes.byte();
  l.heads_inside = choice & 1;
  l.row_padding = choice >> 1 & 7;
  l.head_padding = choice >> 4 & 3;
  return l;
}

// A binary16 pattern: every value is exact in all storage formats but bf16. Without `nonfinite`, the exponent of inf
// and NaN means the largest finite one.
double half_value(std::uint16_t pattern, bool nonfinite) {
  const double sign = pattern & 0x8000 ? -1.0 : 1.0;
  int exponent = pattern >> 10 & 31;
  const int fraction = pattern & 0x3FF;
  if (exponent == 31 && nonfinite)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  exponent = std::min(exponent, 30);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// A few numbers repeated along the tensor: value patterns, not noise, are what kernels trip over, and a short period
// keeps the search space small.
void lay_literals(Bytes& bytes, const char* tensor, std::int64_t elements, bool nonfinite, Values& values) {
  const std::int64_t period = bytes.between(0, 24);
  if (period == 0 || elements == 0) return;
  std::vector<double> pattern;
  for (std::int64_t n = 0; n < period; ++n) pattern.push_back(half_value(bytes.word(), nonfinite));
  TensorValues tensor_values;
  for (std::int64_t n = 0; n < elements; ++n)
    tensor_values.literal.push_back(pattern[static_cast<std::size_t>(n % period)]);
  values.tensors.emplace(tensor, std::move(tensor_values));
}

Values decode_values(Bytes& bytes, const Shape& s) {
  Values v;
  const auto& all = families();
  v.family = std::string(all[bytes.index(all.size())].name);
  v.seed = bytes.byte();
  const std::uint8_t kinds = bytes.byte();
  const bool nonfinite = (kinds & 0xF0) == 0xF0;  // rare: it silences most laws
  const std::int64_t kv_rows = s.batch * s.kv_heads * s.tk;
  if (kinds & 1) lay_literals(bytes, "q", s.batch * s.q_heads * s.tq * s.d_qk, nonfinite, v);
  if (kinds & 2) lay_literals(bytes, "k", kv_rows * s.d_qk, nonfinite, v);
  if (kinds & 4) lay_literals(bytes, "v", kv_rows * s.d_v, nonfinite, v);
  return v;
}

}  // namespace

Case decode_forward(Bytes& bytes) {
  Case c;
  c.about = "found by fuzz_forward";
  c.shape = decode_shape(bytes);
  c.tiling = decode_tiling(bytes);
  c.mask = decode_mask(bytes, c.shape);
  c.values = decode_values(bytes, c.shape);
  const std::uint8_t options = bytes.byte();
  c.out = options & 1 ? OutDType::accumulator : OutDType::storage;
  // A power of two is exact in every kernel's format; the default 1 / sqrt(d) usually is not.
  if (options & 2) c.scale = std::ldexp(1.0, static_cast<int>(bytes.between(-8, 8)));
  if (options & 4) {
    c.q_layout = decode_layout(bytes);
    c.k_layout = decode_layout(bytes);
    c.v_layout = decode_layout(bytes);
    c.o_layout = decode_layout(bytes);
  }
  return c;
}

}  // namespace attest::fuzz
