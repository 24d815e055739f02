#include "properties/shapes.h"

#include <algorithm>

namespace attest {
namespace {

const std::vector<std::int64_t> kPrimes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67};

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> s(shape.size(), 1);
  for (std::size_t a = shape.size(); a-- > 1;) s[a - 1] = s[a] * shape[a];
  return s;
}

template <class T>
std::vector<T> cut(const std::vector<T>& values, const std::vector<std::int64_t>& from,
                   const std::vector<std::int64_t>& to) {
  std::int64_t count = 1;
  for (std::int64_t n : to) count *= n;
  const auto stride = strides_of(from), target = strides_of(to);
  std::vector<T> out(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t source = 0;
    for (std::size_t a = 0; a < to.size(); ++a) source += n / target[a] % to[a] * stride[a];
    out[static_cast<std::size_t>(n)] = values[static_cast<std::size_t>(source)];
  }
  return out;
}

// Axes that are not broadcast follow the shape.
void agree_mask(MaskTensor& m, const Shape& s) {
  const std::int64_t full[4] = {s.batch, s.q_heads, s.tq, s.tk};
  if (m.literal.empty() && m.mask_shape.size() == 4)
    for (std::size_t a = 0; a < 4; ++a)
      if (m.mask_shape[a] != 1) m.mask_shape[a] = full[a];
}

void cut_mask(MaskTensor& m, const Shape& before, const Shape& after) {
  agree_mask(m, after);
  if (m.literal.empty()) return;
  auto from = m.mask_shape;
  if (from.empty()) from = {before.batch, before.q_heads, before.tq, before.tk};
  const std::int64_t full[4] = {after.batch, after.q_heads, after.tq, after.tk};
  auto to = from;
  for (std::size_t a = 0; a < 4; ++a)
    if (from[a] != 1) to[a] = std::min(from[a], full[a]);
  m.literal = cut(m.literal, from, to);
  m.mask_shape = to;
  // Nothing is left of an empty mask; its absence means the same.
  if (m.literal.empty()) m = {};
}

}  // namespace

double work_of(const Case& c) {
  const Shape& s = c.shape;
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  switch (c.op) {
    case Op::forward:
      return d(s.batch) * d(s.q_heads) * d(s.tq) * d(s.tk) * d(s.d_qk + s.d_v + 4);
    case Op::step:
      return d(s.tq) * d(s.tk) * d(s.d_v + 2);
    case Op::merge:
      return d(s.tq) * d(s.parts) * d(s.d_v + 2);
  }
  return 0;
}

std::int64_t random_length(Random& random, std::int64_t tile, std::int64_t most) {
  const std::int64_t kind = random.between(0, 99);
  std::int64_t n;
  if (kind < 4) {
    n = 0;
  } else if (kind < 12) {
    n = 1;
  } else if (kind < 42) {
    n = tile + random.between(-1, 1);
  } else if (kind < 52) {
    n = 2 * tile + random.between(-1, 1);
  } else if (kind < 70) {
    n = random.pick(kPrimes);
  } else {
    n = random.between(1, std::max<std::int64_t>(most, 1));
  }
  return std::clamp<std::int64_t>(n, 0, std::max<std::int64_t>(most, tile + 1));
}

std::int64_t random_dimension(Random& random, std::int64_t most) {
  static const std::vector<std::int64_t> odd{1, 2, 3, 5, 7, 9, 11, 13, 15, 17, 31, 33};
  static const std::vector<std::int64_t> round{4, 8, 16, 24, 32, 40, 64, 80, 96, 128};
  const std::int64_t d = random.chance(0.45) ? random.pick(odd) : random.pick(round);
  return std::min(d, std::max<std::int64_t>(most, 1));
}

Shape random_shape(Random& random, Op op, std::int64_t tile_q, std::int64_t tile_k, double size) {
  Shape s;
  const std::int64_t longest = 4 + static_cast<std::int64_t>(size * 76);
  const std::int64_t widest = 4 + static_cast<std::int64_t>(size * 60);
  s.d_v = random_dimension(random, widest);
  if (op == Op::merge) {
    s.tq = random_length(random, 4, longest);
    s.parts = random.between(2, 6);
    return s;
  }
  s.tq = random_length(random, tile_q, longest);
  s.tk = random_length(random, tile_k, longest);
  if (op == Op::step) return s;
  s.d_qk = random.chance(0.5) ? s.d_v : random_dimension(random, widest);
  if (random.chance(0.25)) s.tq = 1;  // decoding
  if (random.chance(0.15)) s.tq = s.tk;
  s.batch = random.chance(0.7) ? 1 : random.between(1, 3);
  s.kv_heads = random.chance(0.6) ? 1 : random.between(1, 3);
  s.q_heads = s.kv_heads * (random.chance(0.6) ? 1 : random.between(1, 8));
  return s;
}

Shape long_shape(Random& random) {
  Shape s;
  s.d_qk = random.between(16, 64);
  s.d_v = random.between(16, 64);
  s.tk = (std::int64_t{1} << 16) / std::max(s.d_qk, s.d_v) + random.between(1, 200);
  return s;
}

void fit_to(Case& c, Random& random, double budget, bool keep_dimensions) {
  Shape& s = c.shape;
  const bool forward = c.op == Op::forward;
  for (int turn = 0; work_of(c) > budget && turn < 64; ++turn) {
    const std::int64_t choice = turn < 8 ? random.between(0, 3) : random.between(0, 5);
    if (choice == 0 && forward) {
      s.q_heads = s.kv_heads * std::max<std::int64_t>(s.q_heads / s.kv_heads / 2, 1);
    } else if (choice == 1 && forward) {
      s.batch = std::max<std::int64_t>(s.batch / 2, 1);
    } else if ((choice == 2 || choice == 3) && keep_dimensions) {
      continue;
    } else if (choice == 2 && forward) {
      s.d_qk = std::max<std::int64_t>((s.d_qk + 1) / 2, 1);
    } else if (choice == 3) {
      s.d_v = std::max<std::int64_t>((s.d_v + 1) / 2, 1);
    } else if (choice == 4) {
      // The longer of the two keeps its tile edge; the other becomes short.
      std::int64_t& shorter = s.tq < s.tk || c.op == Op::merge ? s.tq : s.tk;
      shorter = std::min(shorter, random.between(1, 5));
    } else if (choice == 5 && turn > 24) {
      s.tk = std::max<std::int64_t>(s.tk / 2, 1);
      s.tq = std::max<std::int64_t>(s.tq / 2, 1);
    }
  }
}

void agree(Case& c, Random& random) {
  Shape& s = c.shape;
  if (s.q_heads % s.kv_heads != 0) s.q_heads = s.kv_heads * std::max<std::int64_t>(s.q_heads / s.kv_heads, 1);
  if (!c.mask.kv_len.empty()) {
    c.mask.kv_len.resize(s.batch, s.tk);
    for (auto& n : c.mask.kv_len)
      if (n > s.tk) n = random.between(0, s.tk);
  }
  agree_mask(c.mask.visible, s);
  agree_mask(c.mask.additive, s);
}

std::vector<std::int64_t> logical_shape(const Case& c, const std::string& t) {
  const Shape& s = c.shape;
  if (c.op == Op::forward) {
    if (t == "q") return {s.batch, s.q_heads, s.tq, s.d_qk};
    if (t == "k") return {s.batch, s.kv_heads, s.tk, s.d_qk};
    if (t == "v") return {s.batch, s.kv_heads, s.tk, s.d_v};
  } else if (c.op == Op::step) {
    if (t == "m" || t == "l") return {s.tq};
    if (t == "acc") return {s.tq, s.d_v};
    if (t == "scores") return {s.tq, s.tk};
    if (t == "v") return {s.tk, s.d_v};
  } else {
    if (t == "m" || t == "l" || t == "lse") return {s.parts, s.tq};
    if (t == "acc" || t == "o") return {s.parts, s.tq, s.d_v};
  }
  return {};
}

Case with_shape(const Case& c, const Shape& shape) {
  Case out = c;
  out.shape = shape;
  for (auto& [tensor, values] : out.values.tensors)
    if (!values.literal.empty())
      values.literal = cut(values.literal, logical_shape(c, tensor), logical_shape(out, tensor));
  cut_mask(out.mask.visible, c.shape, shape);
  cut_mask(out.mask.additive, c.shape, shape);
  if (!out.mask.kv_len.empty()) {
    out.mask.kv_len.resize(shape.batch);
    for (auto& n : out.mask.kv_len) n = std::min(n, shape.tk);
  }
  if (!(shape == c.shape)) out.expected = {};
  return out;
}

}  // namespace attest
