// Case -> memory: every tensor with its format, strides, guard zones and poison.
#include <cstring>
#include <limits>

#include "oracle/format.h"
#include "oracle/philox.h"
#include "oracle/problem_state.h"

namespace attest {
namespace {

std::int32_t abi_causal(Causal causal) {
  return causal == Causal::top_left       ? ATTN_CAUSAL_TOP_LEFT
         : causal == Causal::bottom_right ? ATTN_CAUSAL_BOTTOM_RIGHT
                                          : ATTN_CAUSAL_NONE;
}

std::int32_t abi_op(Op op) { return op == Op::step ? ATTN_OP_STEP : op == Op::merge ? ATTN_OP_MERGE : ATTN_OP_FORWARD; }

std::int32_t abi_state(StateKind kind) {
  return kind == StateKind::ml ? ATTN_STATE_ML : kind == StateKind::mla ? ATTN_STATE_MLA : ATTN_STATE_OLSE;
}

// Any finite number of the format, all magnitudes alike: what may stand at a key that nobody sees.
std::uint64_t finite_bits(DType format, std::uint64_t random) {
  const int width = static_cast<int>(8 * bytes_of(format));
  const std::uint64_t bits = random >> (64 - width);
  const double value = decode(format, bits);
  const bool finite = value - value == 0;
  // Clearing the top exponent bit of an infinity or NaN leaves a number.
  return finite ? bits : bits & ~(std::uint64_t{1} << (width - 2));
}

// Logical [a, b, c, d] with `shape` as its last axes.
void pad_shape(const Extents& shape, std::int64_t (&out)[4]) {
  for (std::size_t i = 0; i < 4; ++i) out[i] = i + shape.size() < 4 ? 1 : shape[i + shape.size() - 4];
}

}  // namespace

Problem::State::State(const Case& c, const Formats& f, const ProblemOptions& o)
    : source(c), formats(f), out_dtype(DType::fp32), options(o) {
  validate(source, "case");
  if (source.dtype != DType::any) formats.storage = source.dtype;
  out_dtype = source.op == Op::forward && source.out == OutDType::storage ? formats.storage : formats.accumulator;
  add_masks();
  const Shape& s = source.shape;
  if (source.op == Op::forward) {
    seen.reserve(static_cast<std::size_t>(s.batch * s.kv_heads * s.tk));
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.kv_heads; ++h)
        for (std::int64_t j = 0; j < s.tk; ++j) seen.push_back(any_row_sees(b, h, j));
  }
  add_inputs();
  if (source.op == Op::forward) {
    hide_unseen_keys("k");
    hide_unseen_keys("v");
  }
  add_outputs();
  add_reserved();
  fill_abi();
}

void Problem::State::add_inputs() {
  inputs.reserve(5);
  for (auto& [name, values] : make_values(source)) {
    const auto is = [&, &its = name](std::string_view tensor) { return same_name(its, tensor); };
    const bool stored = is("q") || is("k") || is("v");
    const DType format = stored ? formats.storage : formats.accumulator;
    Extents shape = input_shape(source, name);
    int rank = static_cast<int>(shape.size());
    std::int64_t full[4];
    if (source.op == Op::merge) {
      // [parts, 1, rows, columns]: a part can be pointed at, and head padding stands between parts.
      --rank;
      const std::int64_t columns = rank == 2 ? shape[2] : 1;
      const std::int64_t parted[4] = {shape[0], 1, rank == 2 ? shape[1] : 1, rank == 2 ? columns : shape[1]};
      std::memcpy(full, parted, sizeof full);
    } else {
      pad_shape(shape, full);
    }
    const Layout& layout = is("q") || is("scores") ? source.q_layout
                           : is("k") || is("acc")  ? source.k_layout
                           : is("v")               ? source.v_layout
                                                   : Layout{};
    Strided tensor(name, format, full, rank, layout, options.poison);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = encode(format, values[i]);
      tensor.set_bits(static_cast<std::int64_t>(i), bits);
      values[i] = decode(format, bits);
    }
    inputs.emplace(name, Input{std::move(tensor), std::move(values)});
  }
}

void Problem::State::hide_unseen_keys(const std::string& name) {
  Input& input = inputs.at(name);
  const std::int64_t columns = name == "k" ? source.shape.d_qk : source.shape.d_v;
  const DType format = input.tensor.format();
  const std::uint64_t poison = options.poison * std::uint64_t{0x0101010101010101};
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * bytes_of(format));
  RandomStream random(options.invisible_seed, name == "k" ? 0x756b : 0x7576);
  for (std::size_t key = 0; key < seen.size(); ++key) {
    if (seen[key]) continue;
    for (std::int64_t e = 0; e < columns; ++e) {
      const std::int64_t at = static_cast<std::int64_t>(key) * columns + e;
      const std::uint64_t bits = options.invisible_seed == 0
                                     ? poison & mask
                                     : finite_bits(format, random.bits(static_cast<std::uint64_t>(at)));
      input.tensor.set_bits(at, bits);
      input.values[static_cast<std::size_t>(at)] = decode(format, bits);
    }
  }
}

void Problem::State::add_outputs() {
  outputs.reserve(3);
  // One number a row: rows stand where columns of O do, apart by the same step.
  Layout narrow;
  narrow.column_step = source.o_layout.column_step;
  narrow.row_padding = source.o_layout.row_padding;
  for (const char* name : {"o", "lse", "m", "l", "acc"}) {
    const Extents shape = output_shape(source, name);
    if (shape.empty()) continue;
    const bool is_o = std::string_view(name) == "o";
    const bool wide = is_o || std::string_view(name) == "acc";
    std::int64_t full[4];
    pad_shape(shape, full);
    outputs.emplace(name, Strided(name, is_o ? out_dtype : formats.accumulator, full, static_cast<int>(shape.size()),
                                  wide ? source.o_layout : narrow, options.poison));
  }
}

void Problem::State::add_masks() {
  if (source.op != Op::forward) return;  // a step's mask stands in its scores
  const Mask& m = source.mask;
  const auto make = [&](const MaskTensor& tensor, std::int64_t width, const char* name) {
    if (!tensor.present()) return std::unique_ptr<MaskMemory>();
    auto memory = std::make_unique<MaskMemory>();
    memory->values = make_mask(tensor, source.shape, source.tiling.block_k);
    memory->width = width;
    memory->buffer = std::make_unique<Buffer>(static_cast<std::int64_t>(memory->values.visible.size()) * width,
                                              options.poison, Buffer::Options{.name = name, .alignment = width});
    for (std::size_t i = 0; i < memory->values.visible.size(); ++i) {
      const std::uint32_t bits = memory->pattern(i);
      std::memcpy(memory->buffer->data() + static_cast<std::int64_t>(i) * width, &bits,
                  static_cast<std::size_t>(width));
    }
    return memory;
  };
  visible_mask = make(m.visible, 1, "mask.visible");
  additive_mask = make(m.additive, 4, "mask.additive");
  if (!m.kv_len.empty()) {
    kv_len = std::make_unique<Buffer>(static_cast<std::int64_t>(8 * m.kv_len.size()), options.poison,
                                      Buffer::Options{.name = "mask.kv_len", .alignment = 8});
    std::memcpy(kv_len->data(), m.kv_len.data(), 8 * m.kv_len.size());
  }
}

void Problem::State::add_reserved() {
  // Present, all zeros and correctly shaped: a kernel that ignores the option instead of refusing it gets no excuse.
  if (source.reserved.bias) bias = std::make_unique<Buffer>(4, 0, Buffer::Options{.name = "bias", .alignment = 4});
  if (source.reserved.sinks) sinks = std::make_unique<Buffer>(4, 0, Buffer::Options{.name = "sinks", .alignment = 4});
}

std::uint32_t Problem::State::MaskMemory::pattern(std::size_t index) const {
  const bool open = values.visible[index] != 0;
  if (width == 4) return open ? 0u : 0xff800000u;   // 0 or -inf
  return !open ? 0u : index % 2 == 0 ? 1u : 0xffu;  // "anything else = visible" is part of the interface
}

attn_tensor Problem::State::MaskMemory::view(const Shape& full) {
  attn_tensor t{};
  t.data = buffer->data();
  t.dtype = width == 4 ? ATTN_FP32 : ATTN_U8;
  t.rank = 4;
  const std::int64_t extents[4] = {full.batch, full.q_heads, full.tq, full.tk};
  std::int64_t stride = 1;
  for (int axis = 3; axis >= 0; --axis) {
    t.shape[axis] = extents[axis];
    t.stride[axis] = values.shape[axis] == 1 && extents[axis] != 1 ? 0 : stride;
    stride *= values.shape[axis];
  }
  return t;
}

attn_tensor Problem::State::view(const std::string& input, std::int64_t part) {
  const auto at = inputs.find(input);
  return at == inputs.end() ? attn_tensor{} : at->second.tensor.view(part);
}

attn_tensor Problem::State::out_view(const std::string& output) {
  const auto at = outputs.find(output);
  return at == outputs.end() ? attn_tensor{} : at->second.view();
}

void Problem::State::select_parts(std::int64_t x, std::int64_t y) {
  abi.a = {view("m", x), view("l", x), view("acc", x)};
  abi.b = {view("m", y), view("l", y), view("acc", y)};
}

void Problem::State::fill_abi() {
  abi.struct_size = sizeof(attn_problem);
  abi.op = abi_op(source.op);
  abi.mask.window_left = source.reserved.window_left;
  abi.mask.window_right = source.reserved.window_right;
  abi.softcap = source.reserved.softcap;
  abi.scale = source.effective_scale();
  abi.tiling.block_q = source.tiling.block_q;
  abi.tiling.block_k = source.tiling.block_k;
  abi.tiling.splits = source.tiling.splits;
  abi.tiling.threads = source.tiling.threads;
  abi.state_kind = abi_state(source.state);
  abi.q = view("q");
  abi.k = view("k");
  abi.v = view("v");
  abi.o = out_view("o");
  abi.lse = out_view("lse");
  abi.out = {out_view("m"), out_view("l"), out_view("acc")};
  abi.scores = view("scores");
  if (source.op == Op::step) abi.a = {view("m"), view("l"), view("acc")};
  if (source.op == Op::merge) select_parts(0, source.shape.parts > 1 ? 1 : 0);
  if (source.op != Op::forward) return;
  const Shape& s = source.shape;
  abi.mask.causal = abi_causal(source.mask.causal);
  if (kv_len) abi.mask.kv_len = reinterpret_cast<const std::int64_t*>(kv_len->data());
  if (visible_mask) abi.mask.visible = visible_mask->view(s);
  if (additive_mask) abi.mask.additive = additive_mask->view(s);
  if (bias) abi.bias = {bias->data(), ATTN_FP32, 4, {s.batch, s.q_heads, s.tq, s.tk}, {0, 0, 0, 0}};
  if (sinks) abi.sinks = {sinks->data(), ATTN_FP32, 1, {s.q_heads, 0, 0, 0}, {0, 0, 0, 0}};
}

}  // namespace attest
