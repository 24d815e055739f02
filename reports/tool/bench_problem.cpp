#include "reports/tool/bench_problem.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace attest {
namespace {

constexpr std::size_t alignment = 256, most_sets = 64;

std::size_t aligned(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

std::vector<BenchField> inputs_of(const BenchCell& c) {
  if (c.kind == BenchKind::scan)
    return {{"scores", ATTN_FP32, {c.rows, c.columns}}, {"m_in", ATTN_FP32, {c.rows}}, {"l_in", ATTN_FP32, {c.rows}}};
  if (c.kind == BenchKind::copy) return {{"from", ATTN_FP32, {c.rows / 4}}};
  if (!c.is_attention()) return {};
  return {{"q", c.dtype, {c.batch, c.q_heads, c.tq, c.d}},
          {"k", c.dtype, {c.batch, c.kv_heads, c.tk, c.d}},
          {"v", c.dtype, {c.batch, c.kv_heads, c.tk, c.d}}};
}

std::vector<BenchField> outputs_of(const BenchCell& c) {
  if (c.kind == BenchKind::scan) return {{"m", ATTN_FP32, {c.rows}}, {"l", ATTN_FP32, {c.rows}}};
  if (c.kind == BenchKind::copy) return {{"to", ATTN_FP32, {c.rows / 4}}};
  if (!c.is_attention()) return {};
  return {{"o", c.dtype, {c.batch, c.q_heads, c.tq, c.d}}, {"lse", ATTN_FP32, {c.batch, c.q_heads, c.tq}}};
}

attn_tensor view(const BenchField& f, std::byte* base) {
  attn_tensor t = {};
  t.data = base + f.offset;
  t.dtype = f.dtype;
  t.rank = static_cast<std::int32_t>(f.shape.size());
  std::int64_t stride = 1;
  for (std::size_t a = f.shape.size(); a-- > 0; stride *= f.shape[a]) {
    t.shape[a] = f.shape[a];
    t.stride[a] = stride;
  }
  return t;
}

}  // namespace

std::int64_t BenchField::count() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

std::size_t BenchField::bytes() const { return static_cast<std::size_t>(count() * bench_element(dtype)); }

const BenchField* BenchLayout::find(const std::string& name, std::size_t set) const {
  for (const BenchField& f : sets[set])
    if (f.name == name) return &f;
  return nullptr;
}

BenchLayout bench_layout(const BenchCell& cell, std::size_t l2_bytes) {
  BenchLayout layout;
  layout.bytes = alignment;
  const auto place = [&](std::vector<BenchField> fields) {
    for (BenchField& f : fields) {
      f.offset = layout.bytes;
      layout.bytes += aligned(f.bytes());
    }
    return fields;
  };
  layout.outputs = place(outputs_of(cell));
  if (cell.kind != BenchKind::copy) layout.reference = place(outputs_of(cell));
  const std::size_t before = layout.bytes;
  layout.sets.push_back(place(inputs_of(cell)));
  const std::size_t one = std::max<std::size_t>(layout.bytes - before, 1);
  const std::size_t wanted = cell.is_attention() || cell.kind == BenchKind::scan ? (4 * l2_bytes + one - 1) / one : 1;
  while (layout.sets.size() < std::min(wanted, most_sets)) layout.sets.push_back(place(inputs_of(cell)));
  return layout;
}

attn_problem bench_problem(const BenchCell& cell, const BenchLayout& layout, std::byte* base, std::size_t set,
                           bool to_reference) {
  attn_problem p = {};
  p.struct_size = sizeof p;
  p.mask.window_left = p.mask.window_right = -1;
  if (cell.kind == BenchKind::copy || cell.kind == BenchKind::matmul) return p;
  const std::vector<BenchField>& in = layout.sets[set];
  const std::vector<BenchField>& out = to_reference ? layout.reference : layout.outputs;
  if (cell.kind == BenchKind::scan) {
    p.op = ATTN_OP_STEP;
    p.state_kind = ATTN_STATE_ML;
    p.scores = view(in[0], base);
    p.a.m = view(in[1], base);
    p.a.l = view(in[2], base);
    p.out.m = view(out[0], base);
    p.out.l = view(out[1], base);
    return p;
  }
  p.op = ATTN_OP_FORWARD;
  p.q = view(in[0], base);
  p.k = view(in[1], base);
  p.v = view(in[2], base);
  p.o = view(out[0], base);
  p.lse = view(out[1], base);
  p.scale = 1 / std::sqrt(static_cast<double>(cell.d));
  // One alignment says it: Tq = Tk wherever a cell is causal.
  p.mask.causal = cell.causal ? ATTN_CAUSAL_TOP_LEFT : ATTN_CAUSAL_NONE;
  return p;
}

bool suits_cell(const attn_kernel& kernel, const BenchCell& cell) {
  const std::string_view name = kernel.name;
  const auto family = [&](std::string_view word) { return name.find("." + std::string(word) + ".") != name.npos; };
  if (cell.kind == BenchKind::scan) return kernel.op == ATTN_OP_STEP && family("scan");
  if (!cell.is_attention() || kernel.op != ATTN_OP_FORWARD || kernel.contract.in_dtype != cell.dtype) return false;
  // A tile of one query and its group, against tiles of many rows.
  return family("decode") == (cell.kind == BenchKind::decode);
}

}  // namespace attest
