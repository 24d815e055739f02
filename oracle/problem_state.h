// The inside of a Problem.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oracle/named.h"
#include "oracle/problem.h"
#include "oracle/recipe.h"
#include "oracle/strided.h"

namespace attest {

struct Problem::State {
  State(const Case& c, const Formats& formats, const ProblemOptions& options);

  struct Input {
    Strided tensor;
    std::vector<double> values;  // what stands in storage, exactly
  };

  void add_inputs();
  void add_outputs();
  void add_masks();
  void add_reserved();
  void hide_unseen_keys(const std::string& name);
  void fill_abi();
  void select_parts(std::int64_t x, std::int64_t y);
  bool visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
  bool any_row_sees(std::int64_t b, std::int64_t kv_head, std::int64_t j) const;
  std::string mask_damage() const;
  attn_tensor view(const std::string& input, std::int64_t part = 0);
  attn_tensor out_view(const std::string& output);

  Case source;
  Formats formats;
  DType out_dtype;
  ProblemOptions options;
  attn_problem abi{};
  Named<Input> inputs;
  Named<Strided> outputs;
  std::vector<std::uint8_t> seen;  // [batch, kv_heads, tk]

  struct MaskMemory {
    MaskValues values;  // what the predicate reads
    std::unique_ptr<Buffer> buffer;
    std::int64_t width = 1;  // bytes of an element
    bool lets_through(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
    std::uint32_t pattern(std::size_t index) const;  // bits of an element in memory
    attn_tensor view(const Shape& full);
  };
  std::unique_ptr<MaskMemory> visible_mask, additive_mask;
  std::unique_ptr<Buffer> kv_len, bias, sinks;
};

}  // namespace attest
