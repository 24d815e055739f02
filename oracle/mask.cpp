// Mask patterns: which entries a mask lets through, as a function of (batch, head, row, key) and the seed.
#include <algorithm>

#include "oracle/case_error.h"
#include "oracle/philox.h"
#include "oracle/recipe.h"

namespace attest {
namespace {

// In the order of mask_patterns().
enum Pattern {
  all_visible,
  random,
  row_empty,
  first_row_empty,
  block_empty,
  first_blocks_empty,
  last_key_only,
  checkerboard
};

Pattern find_pattern(std::string_view name) {
  const auto& known = mask_patterns();
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) case_error("case", "mask", "unknown pattern '" + printable(name) + "'");
  return static_cast<Pattern>(at - known.begin());
}

}  // namespace

const std::vector<std::string_view>& mask_patterns() {
  static const std::vector<std::string_view> all = {
      "all-visible",         // a mask that masks nothing
      "random",              // each entry visible with probability `density`
      "row-empty",           // about a third of the rows, one at least, see nothing; the others everything
      "first-row-empty",     // row 0 sees nothing
      "block-empty",         // the middle key block is masked: a rescale without a maximum
      "first-blocks-empty",  // only the last key block is visible: the maximum is still -inf when it comes
      "last-key-only",       // one visible key, in the last, perhaps partial block
      "checkerboard",        // (row + key) even
  };
  return all;
}

MaskValues make_mask(const MaskTensor& m, const Shape& shape, std::int64_t block_k) {
  MaskValues out{{shape.batch, shape.q_heads, shape.tq, shape.tk}, {}};
  if (m.mask_shape.size() == 4) std::copy(m.mask_shape.begin(), m.mask_shape.end(), out.shape);
  const std::int64_t rows = out.shape[2], keys = out.shape[3];
  if (!m.literal.empty()) {
    out.visible = m.literal;
    return out;
  }
  const Pattern pattern = find_pattern(m.pattern);
  const std::int64_t block = block_k > 0 ? block_k : 16;
  const std::int64_t blocks = (keys - 1) / block + 1, middle = blocks / 2;
  RandomStream entries(m.seed, 0x6d61736b), rows_stream(m.seed, 0x726f7773);
  // Without this a seed could leave every row of a head with keys.
  const std::int64_t chosen = rows > 0 ? static_cast<std::int64_t>(m.seed % static_cast<std::uint64_t>(rows)) : 0;
  out.visible.reserve(static_cast<std::size_t>(out.shape[0] * out.shape[1] * rows * keys));
  std::uint64_t index = 0, row = 0;
  for (std::int64_t bh = 0; bh < out.shape[0] * out.shape[1]; ++bh) {
    for (std::int64_t i = 0; i < rows; ++i, ++row) {
      const bool row_is_empty = i == chosen || rows_stream.uniform(row) < 1.0 / 3;
      for (std::int64_t j = 0; j < keys; ++j, ++index) {
        bool visible = true;
        switch (pattern) {
          case all_visible:
            break;
          case random:
            visible = entries.uniform(index) < m.density;
            break;
          case row_empty:
            visible = !row_is_empty;
            break;
          case first_row_empty:
            visible = i != 0;
            break;
          case block_empty:
            visible = j / block != middle;
            break;
          case first_blocks_empty:
            visible = j / block == blocks - 1;
            break;
          case last_key_only:
            visible = j == keys - 1;
            break;
          case checkerboard:
            visible = (i + j) % 2 == 0;
            break;
        }
        out.visible.push_back(visible);
      }
    }
  }
  return out;
}

}  // namespace attest
