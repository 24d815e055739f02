#include "oracle/problem.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "oracle/format.h"
#include "oracle/npy.h"
#include "oracle/problem_state.h"

namespace attest {

Problem::Problem(const Case& c, const Formats& formats, const ProblemOptions& options)
    : state_(std::make_unique<State>(c, formats, options)) {
  prefill(options.output_prefill);
}
Problem::~Problem() = default;
Problem::Problem(Problem&&) noexcept = default;
Problem& Problem::operator=(Problem&&) noexcept = default;

const Case& Problem::source() const { return state_->source; }
const Formats& Problem::formats() const { return state_->formats; }
DType Problem::out_dtype() const { return state_->out_dtype; }
const attn_problem& Problem::abi() const { return state_->abi; }
attn_problem& Problem::mutable_abi() { return state_->abi; }
double Problem::scale() const { return state_->abi.scale; }

std::span<const double> Problem::input(const std::string& tensor) const {
  const auto at = state_->inputs.find(tensor);
  if (at == state_->inputs.end()) return {};
  return at->second.values;
}

// The definition of the masks, one line each; no tile logic.
bool Problem::State::visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const Mask& m = source.mask;
  if (!m.kv_len.empty() && j >= m.kv_len[static_cast<std::size_t>(b)]) return false;
  if (m.causal == Causal::top_left && j > i) return false;
  if (m.causal == Causal::bottom_right && j > i + source.shape.tk - source.shape.tq) return false;
  if (visible_mask && !visible_mask->lets_through(b, h, i, j)) return false;
  if (additive_mask && !additive_mask->lets_through(b, h, i, j)) return false;
  return true;
}

bool Problem::State::MaskMemory::lets_through(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const std::int64_t index[4] = {b, h, i, j};
  std::int64_t at = 0;
  for (int axis = 0; axis < 4; ++axis) at = at * values.shape[axis] + (values.shape[axis] == 1 ? 0 : index[axis]);
  return values.visible[static_cast<std::size_t>(at)] != 0;
}

bool Problem::State::any_row_sees(std::int64_t b, std::int64_t kv_head, std::int64_t j) const {
  const Shape& s = source.shape;
  const std::int64_t group = s.q_heads / s.kv_heads;
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
    for (std::int64_t i = s.tq - 1; i >= 0; --i)  // late rows see most under a causal mask
      if (visible(b, h, i, j)) return true;
  return false;
}

bool Problem::visible(std::int64_t batch, std::int64_t q_head, std::int64_t i, std::int64_t j) const {
  return state_->visible(batch, q_head, i, j);
}

bool Problem::key_seen(std::int64_t batch, std::int64_t kv_head, std::int64_t j) const {
  const Shape& s = state_->source.shape;
  if (state_->source.op != Op::forward) return true;
  return state_->seen[static_cast<std::size_t>((batch * s.kv_heads + kv_head) * s.tk + j)] != 0;
}

bool Problem::has_output(const std::string& tensor) const {
  if (tensor == "lse" && !state_->abi.lse.data) return false;  // a law may ask for none
  return state_->outputs.contains(tensor);
}

std::vector<double> Problem::output(const std::string& tensor) const {
  const auto at = state_->outputs.find(tensor);
  if (at == state_->outputs.end()) return {};
  const Strided& t = at->second;
  std::vector<double> xs(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = decode(t.format(), t.bits(static_cast<std::int64_t>(i)));
  return xs;
}

std::vector<std::uint64_t> Problem::output_bits(const std::string& tensor) const {
  const auto at = state_->outputs.find(tensor);
  if (at == state_->outputs.end()) return {};
  const Strided& t = at->second;
  const std::uint64_t minus_zero = encode(t.format(), -0.0);
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = t.bits(static_cast<std::int64_t>(i));
    if (bits[i] == minus_zero) bits[i] = 0;
  }
  return bits;
}

void Problem::prefill(std::uint8_t pattern) {
  const std::uint64_t bits = pattern * std::uint64_t{0x0101010101010101};
  for (auto& [name, t] : state_->outputs)
    for (std::int64_t i = 0; i < t.count(); ++i) t.set_bits(i, bits);
}

std::string Problem::State::mask_damage() const {
  const auto check = [](const std::string& name, const Buffer* buffer, std::int64_t width, auto expected) {
    if (!buffer) return std::string();
    if (buffer->broken_guard()) return name + ": written outside of the tensor";
    for (std::int64_t i = 0; i < buffer->size() / width; ++i) {
      const auto bits = expected(static_cast<std::size_t>(i));
      if (std::memcmp(buffer->data() + i * width, &bits, static_cast<std::size_t>(width)) != 0)
        return name + ": element " + std::to_string(i) + " of its memory was overwritten; masks are inputs";
    }
    return std::string();
  };
  const auto mask = [&](const std::string& name, const MaskMemory* m) {
    if (!m) return std::string();
    return check(name, m->buffer.get(), m->width, [&](std::size_t i) { return m->pattern(i); });
  };
  const auto zero = [](std::size_t) { return std::uint32_t{0}; };
  for (const std::string& report :
       {mask("mask.visible", visible_mask.get()), mask("mask.additive", additive_mask.get()),
        check("mask.kv_len", kv_len.get(), 8, [&](std::size_t i) { return source.mask.kv_len[i]; }),
        check("bias", bias.get(), 4, zero), check("sinks", sinks.get(), 4, zero)})
    if (!report.empty()) return report;
  return "";
}

std::string Problem::untouched_report() const {
  for (const auto& [name, input] : state_->inputs) {
    const Strided& t = input.tensor;
    for (std::int64_t i = 0; i < t.count(); ++i)
      if (t.bits(i) != encode(t.format(), input.values[static_cast<std::size_t>(i)]))
        return t.place(i) + ": input overwritten; inputs must not be written";
    if (std::string damage = t.damage(); !damage.empty()) return damage;
  }
  for (const auto& [name, t] : state_->outputs)
    if (std::string damage = t.damage(); !damage.empty()) return damage;
  return state_->mask_damage();
}

void Problem::protect_inputs(bool read_only) {
  for (auto& [name, input] : state_->inputs) input.tensor.protect(read_only);
  for (const auto& mask : {state_->visible_mask.get(), state_->additive_mask.get()})
    if (mask) mask->buffer->protect(read_only);
  for (Buffer* buffer : {state_->kv_len.get(), state_->bias.get(), state_->sinks.get()})
    if (buffer) buffer->protect(read_only);
}

std::vector<std::span<std::byte>> Problem::memory() {
  std::vector<std::span<std::byte>> spans;
  const auto add = [&](Buffer& b) {
    const std::span<std::byte> before = b.guard_before(), after = b.guard_after();
    spans.push_back({before.data(), before.size() + static_cast<std::size_t>(b.size()) + after.size()});
  };
  for (auto& [name, input] : state_->inputs) add(input.tensor.buffer());
  for (auto& [name, t] : state_->outputs) add(t.buffer());
  for (const auto& mask : {state_->visible_mask.get(), state_->additive_mask.get()})
    if (mask) add(*mask->buffer);
  for (Buffer* buffer : {state_->kv_len.get(), state_->bias.get(), state_->sinks.get()})
    if (buffer) add(*buffer);
  return spans;
}

void Problem::select_parts(std::int64_t x, std::int64_t y) {
  const std::int64_t parts = state_->source.shape.parts;
  if (state_->source.op != Op::merge || x < 0 || y < 0 || x >= parts || y >= parts)
    throw std::out_of_range("select_parts: parts " + std::to_string(x) + " and " + std::to_string(y) +
                            " of a case that has " + std::to_string(parts) + "; choose existing parts of a merge");
  state_->select_parts(x, y);
}

void Problem::set_input(const std::string& tensor, std::int64_t logical_index, double value) {
  auto& input = state_->inputs.at(tensor);
  const std::uint64_t bits = encode(input.tensor.format(), value);
  input.values.at(static_cast<std::size_t>(logical_index)) = decode(input.tensor.format(), bits);
  input.tensor.set_bits(logical_index, bits);
}

double problem_bytes(const Case& c, const Formats& formats) {
  // In double: sizes of 2^40 and more must not overflow here, as this is what refuses them.
  const Shape& s = c.shape;
  const auto product = [](std::span<const std::int64_t> shape) {
    double n = 1;
    for (std::int64_t extent : shape) n *= static_cast<double>(extent);
    return n;
  };
  const auto padded = [&](const Extents& shape, const Layout& l) {
    if (shape.size() < 2)
      return product(shape) * static_cast<double>(l.column_step) + static_cast<double>(l.row_padding);
    double lines = product(shape) / std::max<double>(static_cast<double>(shape.back()), 1);
    const double rows = static_cast<double>(shape[shape.size() - 2]);
    // Head padding adds rows even where there are none.
    const double heads = rows > 0 ? lines / rows : product({shape.data(), shape.size() - 2});
    lines += heads * static_cast<double>(l.head_padding);
    return lines * (static_cast<double>(shape.back()) * static_cast<double>(l.column_step) +
                    static_cast<double>(l.row_padding));
  };
  const auto width = [](DType f) { return static_cast<double>(bytes_of(f)); };
  const DType storage = c.dtype == DType::any ? formats.storage : c.dtype;
  const DType out = c.op == Op::forward && c.out == OutDType::storage ? storage : formats.accumulator;
  double bytes = 0;
  const auto input = [&](const char* name, DType f, const Layout& l) {
    const auto shape = input_shape(c, name);
    if (!shape.empty()) bytes += padded(shape, l) * width(f) + product(shape) * 8;  // and the exact doubles
  };
  input("q", storage, c.q_layout);
  input("k", storage, c.k_layout);
  input("v", storage, c.v_layout);
  input("scores", formats.accumulator, c.q_layout);
  input("m", formats.accumulator, {});
  input("l", formats.accumulator, {});
  input("acc", formats.accumulator, c.k_layout);
  for (const char* name : {"o", "lse", "m", "l", "acc"}) {
    const auto shape = output_shape(c, name);
    if (!shape.empty()) bytes += padded(shape, c.o_layout) * width(name[0] == 'o' ? out : formats.accumulator);
  }
  const auto mask = [&](const MaskTensor& m, double element) {
    if (m == MaskTensor{}) return;
    const Extents full = {s.batch, s.q_heads, s.tq, s.tk};
    bytes += (m.mask_shape.size() == 4 ? product(m.mask_shape) : product(full)) * (element + 1);
  };
  mask(c.mask.visible, 1);
  mask(c.mask.additive, 4);
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  // Bookkeeping for each head, row and key, whatever their width; and the partial results of a kernel's splits.
  const double rows = d(s.batch) * d(s.q_heads) * d(s.tq), keys = d(s.batch) * d(s.kv_heads) * d(s.tk);
  bytes += 8 * (d(s.batch) * (d(s.q_heads) + d(s.kv_heads)) + rows + d(s.tk) + d(s.parts)) + keys;
  return bytes + 8 * std::max<double>(d(c.tiling.splits) - 1, 0) * (rows * (d(s.d_v) + 2) + 1);
}

}  // namespace attest
