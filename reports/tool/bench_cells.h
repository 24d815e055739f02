// What `attest bench` times: cells, each one shape of one computation, and the work in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/attention.h"

namespace attest {

enum class BenchKind { copy, matmul, forward, decode, scan };

struct BenchCell {
  BenchKind kind = BenchKind::forward;
  std::int32_t dtype = ATTN_BF16;                                            // of q, k, v, o; scores are fp32
  std::int64_t batch = 1, q_heads = 1, kv_heads = 1, tq = 1, tk = 1, d = 1;  // forward and decode
  bool causal = false;
  std::int64_t rows = 0, columns = 0;  // scan; matmul: rows x rows; copy: rows bytes

  // "forward.bf16.d128.causal.4096", "decode.bf16.b8.16384", "scan.4096x4096", "copy.1GiB", "matmul.bf16.8192".
  std::string name() const;
  // Work of one call. Attention: 4 B H Tq Tk d operations, half of it under a causal mask, whatever the tiles of a
  // kernel add to that; a product of matrices: 2 n^3.
  double flops() const;
  // Memory that cannot be avoided. Decode: K and V; scan: scores and states; copy: bytes read and bytes written.
  double bytes() const;

  bool is_attention() const { return kind == BenchKind::forward || kind == BenchKind::decode; }
  // The unit that people compare: operations where arithmetic bounds it, bytes where memory does.
  bool counts_flops() const { return kind == BenchKind::forward || kind == BenchKind::matmul; }
  const char* unit() const { return counts_flops() ? "TFLOP/s" : "GB/s"; }
  // In that unit, for a call that took so long.
  double rate(double seconds) const { return (counts_flops() ? flops() / 1e12 : bytes() / 1e9) / seconds; }
};

struct BenchChoice {
  std::vector<std::string> cells;    // globs over names; empty: all
  std::vector<std::string> sizes;    // "4096", "4k": length of forward, keys of decode; "4096x1k": rows x columns
  std::vector<std::string> formats;  // "bf16", "fp16", "fp32", of attention
};

// In the order in which they are measured. Forward: batch x length = 16k tokens, 2048 hidden; decode: 32 query heads
// over 8 of the keys, d = 128. Raises UsageError for a size or format that cannot be read, or globs that match nothing.
std::vector<BenchCell> bench_cells(const BenchChoice& choice);

// "bf16" for ATTN_BF16, and back (ATTN_DTYPE_NONE for a word that names none).
const char* bench_format(std::int32_t dtype);
std::int32_t bench_dtype(const std::string& format);
std::int64_t bench_element(std::int32_t dtype);  // bytes

}  // namespace attest
