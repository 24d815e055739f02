// A Case: pure data that names one problem completely. The same file is a seed, a regression, a RapidCheck
// counterexample, a fuzzer's artefact and the argument of `attest check`.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/extents.h"
#include "oracle/named.h"

namespace attest {

enum class Op { step, merge, forward };
enum class StateKind { ml, mla, olse };

// Storage format of q, k, v (of v in a step). `any` leaves it to the kernel: values are rounded to nearest even.
enum class DType { any, fp64, fp32, fp16, bf16 };

// Format of O: that of the inputs, or that of the accumulator (measured before output rounding).
enum class OutDType { storage, accumulator };

enum class Causal { none, top_left, bottom_right };

// forward: all fields. step: tq = rows, tk = keys of all blocks together, d_v. merge: tq = rows, parts, d_v.
struct Shape {
  std::int64_t batch = 1, q_heads = 1, kv_heads = 1, tq = 1, tk = 1, d_qk = 1, d_v = 1;
  std::int64_t parts = 2;
  bool operator==(const Shape&) const = default;
};

// Order of axes in memory and padding, per tensor. The default is [batch, head, row, column], dense.
struct Layout {
  bool heads_inside = false;      // [batch, row, head, column] instead
  std::int64_t row_padding = 0;   // unused elements after each row of columns
  std::int64_t head_padding = 0;  // unused rows after each head (each batch entry when heads_inside)
  std::int64_t column_step = 1;   // from one column to the next; LSE follows o's, along its rows
  bool operator==(const Layout&) const = default;
};

// Literal numbers of one tensor in row-major order of its logical shape, or a .npy file with them.
// A number is kept with all its bits: hex floats, inf, and "nan:PAYLOAD" (fp32 bits) survive a round trip.
struct TensorValues {
  std::vector<double> literal;
  std::string npy;  // path relative to the case file; empty = literal
  bool operator==(const TensorValues&) const;
};

// Where values come from: a family (see recipe.h) with a seed and parameters, then literals laid over it by tensor
// name: forward q, k, v; step m, l, acc, scores, v; merge m, l, acc (or o, lse).
struct Values {
  std::string family = "gaussian";
  std::uint64_t seed = 0;
  Named<double> parameters;
  Named<TensorValues> tensors;
  bool operator==(const Values&) const;
};

// Masks of version 1. `visible` and `additive` come from a pattern name with a seed, or are literal (row-major
// [batch, q_heads, tq, tk] or a broadcast of it: axes of extent 1 in mask_shape).
struct MaskTensor {
  std::string pattern;  // "", "random", "row-empty", "block-empty", "first-blocks-empty", ... (recipe.h)
  std::uint64_t seed = 0;
  double density = 0.5;                  // share of visible entries where the pattern is random
  std::vector<std::int64_t> mask_shape;  // empty = full
  std::vector<std::uint8_t> literal;     // 1 = visible
  bool present() const { return !pattern.empty() || !literal.empty(); }
  bool operator==(const MaskTensor&) const;
};

struct Mask {
  Causal causal = Causal::none;
  std::vector<std::int64_t> kv_len;  // empty = all keys exist
  MaskTensor visible;                // boolean mask
  MaskTensor additive;               // 0 where visible, -inf where not
  bool operator==(const Mask&) const = default;
};

// 0 leaves the choice to the kernel.
struct Tiling {
  std::int64_t block_q = 0, block_k = 0, splits = 0;
  std::int32_t threads = 1;
  bool operator==(const Tiling&) const = default;
};

// Options with a reserved place; a case that uses one is valid and is REJECTED by every kernel until it is built.
struct Reserved {
  double softcap = 0;
  std::int64_t window_left = -1, window_right = -1;
  bool bias = false, sinks = false;
  bool any() const { return softcap != 0 || window_left >= 0 || window_right >= 0 || bias || sinks; }
  bool operator==(const Reserved&) const;
};

// What a document printed, checked by the law `encloses` besides the bound: decimal or hex values and a tolerance.
struct Expected {
  Named<std::vector<double>> tensors;  // "o", "lse", "m", "l", "acc"
  double tolerance = 0;                // absolute
  bool operator==(const Expected&) const;
};

// Equality is that of the data: every bit of every number counts (-0 differs from 0, a NaN equals itself), the
// directory does not.
struct Case {
  std::string about;  // one line: where it comes from, what it is for
  Op op = Op::forward;
  StateKind state = StateKind::mla;
  DType dtype = DType::any;
  OutDType out = OutDType::storage;
  Shape shape;
  std::optional<double> scale;  // absent: 1 / sqrt(d_qk) rounded to double
  Layout q_layout, k_layout, v_layout, o_layout;
  Mask mask;
  Tiling tiling;
  Values values;
  Reserved reserved;
  Expected expected;
  std::vector<std::string> kernels, laws;  // globs: what this case is for; empty = all that apply
  std::string directory;                   // where .npy paths are relative to; not part of the data

  double effective_scale() const;  // the given one, whatever it is, or 1 / sqrt(d_qk) rounded to double
  bool operator==(const Case&) const;
};

// Says file, field and reason, on one line.
struct CaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads a .case. Unknown fields, wrong types, negative or impossible sizes, problems beyond `max_bytes` of memory,
// truncated text and bad .npy files raise CaseError; nothing is guessed.
Case parse_case(const std::string& text, const std::string& origin);
Case load_case(const std::string& path);

// Canonical text: parse_case(to_text(c)) == c, and equal cases have equal text.
std::string to_text(const Case& c);

// Writes atomically (temporary file, fsync, rename): a crash leaves the old file or the new one.
void save_case(const Case& c, const std::string& path);

// Raises CaseError if the case cannot be made into a problem (sizes, Hq % Hkv, kv_len range, ...).
void validate(const Case& c, const std::string& origin);

// A short stable name from the content: 16 hex digits. `about` does not count, nor what stands in .npy files.
std::string case_hash(const Case& c);

// Words of the file format: "forward", "mla", "fp16", "accumulator", "top-left", ...
std::string_view name(Op op);
std::string_view name(StateKind kind);
std::string_view name(DType dtype);
std::string_view name(OutDType out);
std::string_view name(Causal causal);

// The name by which a Problem knows a tensor: in states of kind olse, "lse" is m and "o" is acc.
std::string_view tensor_name(const Case& c, std::string_view written);

// Logical shapes by that name; empty if the case has no such tensor. Inputs of a merge have a leading axis `parts`.
Extents input_shape(const Case& c, std::string_view tensor);
Extents output_shape(const Case& c, std::string_view tensor);

// Most bytes that a problem may take: 4 GiB (ATTEST_CASE_GIB says otherwise), or three quarters of what the machine has
// left if that is less.
double memory_limit();

}  // namespace attest
