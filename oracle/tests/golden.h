// Hashes of every family and mask pattern: the recipes' promise of equal bits under every compiler.
#pragma once

#include <bit>
#include <string>

#include "oracle/philox.h"
#include "oracle/recipe.h"

namespace attest {

inline std::string hex_word(std::uint64_t x) {
  std::string s;
  for (int i = 15; i >= 0; --i) s += "0123456789abcdef"[x >> (4 * i) & 15];
  return s;
}

// One line for each family and seed with the hashes of forward, step and merge; one for each mask pattern.
inline std::string golden_hashes() {
  std::string out;
  for (const Family& family : families())
    for (std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{0x9e3779b97f4a7c15}}) {
      out += std::string(family.name) + " " + hex_word(seed);
      for (Op op : {Op::forward, Op::step, Op::merge}) {
        Case c;
        c.op = op;
        c.values.family = family.name;
        c.values.seed = seed;
        c.tiling.block_k = 8;
        c.shape.tq = 7;
        c.shape.d_v = 5;
        if (op == Op::forward) {
          c.shape.batch = 2;
          c.shape.q_heads = 4;
          c.shape.kv_heads = 2;
          c.shape.d_qk = 6;
        }
        if (op != Op::merge) c.shape.tk = 37;
        if (op == Op::merge) c.shape.parts = 6;
        if (op == Op::step) c.mask.visible.pattern = "block-empty";
        std::uint64_t hash = fnv_offset;
        for (const auto& [name, xs] : make_values(c))
          for (double x : xs) hash = fnv1a_word(hash, std::bit_cast<std::uint64_t>(x));
        out += ' ';
        out += hex_word(hash);
      }
      out += "\n";
    }
  for (std::string_view pattern : mask_patterns()) {
    MaskTensor m;
    m.pattern = pattern;
    m.seed = 77;
    Shape shape;
    shape.batch = 2;
    shape.tq = 9;
    shape.tk = 21;
    std::uint64_t hash = fnv_offset;
    for (std::uint8_t bit : make_mask(m, shape, 4).visible) hash = fnv1a(hash, bit);
    out += "mask " + std::string(pattern) + " " + hex_word(hash) + "\n";
  }
  return out;
}

}  // namespace attest
