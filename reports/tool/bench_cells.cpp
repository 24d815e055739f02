#include "reports/tool/bench_cells.h"

#include <algorithm>
#include <charconv>

#include "properties/check.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using Index = std::int64_t;

constexpr Index tokens = 16384, hidden = 2048;
constexpr Index decode_q_heads = 32, decode_kv_heads = 8, decode_d = 128;
constexpr Index copy_bytes = Index{1} << 30, matmul_size = 8192;

struct Extent {
  Index rows = 0, columns = 0;
};

// "4096" or "4k"; 0 for anything else.
Index number(std::string_view word) {
  Index value = 0, unit = 1;
  if (!word.empty() && (word.back() == 'k' || word.back() == 'M')) {
    unit = word.back() == 'k' ? 1024 : 1024 * 1024;
    word.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  return whole && value > 0 && value <= (Index{1} << 40) / unit ? value * unit : 0;
}

void read_sizes(const std::vector<std::string>& words, std::vector<Index>& lengths, std::vector<Extent>& extents) {
  for (const std::string& w : words) {
    const std::size_t by = w.find('x');
    const Extent e =
        by == std::string::npos ? Extent{number(w), 1} : Extent{number(w.substr(0, by)), number(w.substr(by + 1))};
    if (e.rows == 0 || e.columns == 0)
      throw UsageError("--sizes " + w + ": need a length such as 4096 or 4k, or rows x columns such as 4096x1k");
    if (by == std::string::npos)
      lengths.push_back(e.rows);
    else
      extents.push_back(e);
  }
}

BenchCell forward(std::int32_t dtype, Index length, Index d, bool causal) {
  BenchCell c;
  c.dtype = dtype;
  c.batch = std::max<Index>(1, tokens / length);
  c.q_heads = c.kv_heads = hidden / d;
  c.tq = c.tk = length;
  c.d = d;
  c.causal = causal;
  return c;
}

BenchCell decode(std::int32_t dtype, Index batch, Index keys) {
  BenchCell c;
  c.kind = BenchKind::decode;
  c.dtype = dtype;
  c.batch = batch;
  c.q_heads = decode_q_heads;
  c.kv_heads = decode_kv_heads;
  c.tk = keys;
  c.d = decode_d;
  return c;
}

BenchCell plain(BenchKind kind, std::int32_t dtype, Index rows, Index columns) {
  BenchCell c;
  c.kind = kind;
  c.dtype = dtype;
  c.rows = rows;
  c.columns = columns;
  return c;
}

std::vector<BenchCell> all_cells(const BenchChoice& choice) {
  std::vector<Index> lengths, keys;
  std::vector<Extent> extents;
  read_sizes(choice.sizes, lengths, extents);
  keys = lengths;
  if (choice.sizes.empty()) {
    lengths = {512, 1024, 2048, 4096, 8192, 16384};
    keys = {4096, 16384, 65536};
    extents = {{132, 1 << 20}, {4096, 4096}, {65536, 4096}, {16384, 16384}, {262144, 1024}};
  }
  std::vector<std::int32_t> formats;
  for (const std::string& f : choice.formats) {
    formats.push_back(bench_dtype(f));
    if (formats.back() == ATTN_DTYPE_NONE) throw UsageError("--formats " + f + ": need bf16, fp16 or fp32");
  }
  if (formats.empty()) formats = {ATTN_BF16};

  std::vector<BenchCell> cells = {plain(BenchKind::copy, ATTN_FP32, copy_bytes, 1),
                                  plain(BenchKind::matmul, ATTN_BF16, matmul_size, matmul_size)};
  for (const Extent& e : extents) cells.push_back(plain(BenchKind::scan, ATTN_FP32, e.rows, e.columns));
  for (const std::int32_t dtype : formats)
    for (const Index batch : {Index{1}, Index{8}, Index{64}})
      for (const Index n : keys) cells.push_back(decode(dtype, batch, n));
  for (const std::int32_t dtype : formats)
    for (const Index d : {Index{64}, Index{128}, Index{256}})
      for (const bool causal : {false, true})
        for (const Index length : lengths) cells.push_back(forward(dtype, length, d, causal));
  return cells;
}

}  // namespace

const char* bench_format(std::int32_t dtype) {
  return dtype == ATTN_BF16 ? "bf16" : dtype == ATTN_FP16 ? "fp16" : dtype == ATTN_FP32 ? "fp32" : "none";
}

std::int32_t bench_dtype(const std::string& format) {
  for (const std::int32_t dtype : {ATTN_BF16, ATTN_FP16, ATTN_FP32})
    if (format == bench_format(dtype)) return dtype;
  return ATTN_DTYPE_NONE;
}

std::int64_t bench_element(std::int32_t dtype) { return dtype == ATTN_FP32 ? 4 : 2; }

std::string BenchCell::name() const {
  const auto n = [](Index x) { return std::to_string(x); };
  switch (kind) {
    case BenchKind::copy:
      return "copy." + (rows % (1 << 30) == 0 ? n(rows >> 30) + "GiB" : n(rows) + "B");
    case BenchKind::matmul:
      return std::string("matmul.") + bench_format(dtype) + "." + n(rows);
    case BenchKind::scan:
      return "scan." + n(rows) + "x" + n(columns);
    case BenchKind::decode:
      return std::string("decode.") + bench_format(dtype) + ".b" + n(batch) + "." + n(tk);
    default:
      return std::string("forward.") + bench_format(dtype) + ".d" + n(d) + (causal ? ".causal." : ".full.") + n(tq);
  }
}

double BenchCell::flops() const {
  const auto x = [](Index n) { return static_cast<double>(n); };
  if (kind == BenchKind::matmul) return 2 * x(rows) * x(rows) * x(rows);
  if (!is_attention()) return 0;
  return 4 * x(batch) * x(q_heads) * x(tq) * x(tk) * x(d) / (causal ? 2 : 1);
}

double BenchCell::bytes() const {
  const auto x = [](Index n) { return static_cast<double>(n); };
  switch (kind) {
    case BenchKind::copy:
      return 2 * x(rows);
    case BenchKind::scan:
      return x(rows) * (x(columns) + 4) * x(bench_element(dtype));  // m and l are read, m and l are written
    case BenchKind::matmul:
      return 3 * x(rows) * x(rows) * x(bench_element(dtype));
    default:
      return 2 * x(batch) * x(kv_heads) * x(tk) * x(d) * x(bench_element(dtype));
  }
}

std::vector<BenchCell> bench_cells(const BenchChoice& choice) {
  std::vector<BenchCell> cells = all_cells(choice);
  for (const std::string& g : choice.cells)
    if (std::none_of(cells.begin(), cells.end(), [&](const BenchCell& c) { return glob_match(g, c.name()); }))
      throw UsageError("no cell matches '" + g + "'; `" + tool_command() + " bench --list` lists them");
  std::erase_if(cells, [&](const BenchCell& c) { return !matches_any(choice.cells, c.name()); });
  return cells;
}

}  // namespace attest
