// A Problem: a Case made into tensors. Exact values, storage formats, strides, guard zones, poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "impl/attention.h"
#include "oracle/case.h"

namespace attest {

// The formats that a problem is made for; from a kernel's Contract, where the case leaves them open.
struct Formats {
  DType storage = DType::fp32;      // q, k, v, and o unless the case wants the accumulator's
  DType accumulator = DType::fp32;  // lse, states, scores
};

struct ProblemOptions {
  std::uint8_t output_prefill = 0xA5;  // byte pattern under every output element before the kernel runs
  // What stands where no row of the head may look (keys beyond kv_len, padding of rows and heads): a byte pattern
  // repeated per element. 0xFF is a NaN in every format.
  std::uint8_t poison = 0xFF;
  // Finite or NaN values written to keys that are invisible to all rows of their head, in k and v. Seed 0: poison.
  std::uint64_t invisible_seed = 0;
};

// One tensor in storage: guard zone, payload with strides, guard zone.
class Buffer;

class Problem {
 public:
  Problem(const Case& c, const Formats& formats, const ProblemOptions& options = {});
  ~Problem();
  Problem(Problem&&) noexcept;
  Problem& operator=(Problem&&) noexcept;

  const Case& source() const;
  const Formats& formats() const;
  DType out_dtype() const;  // of O

  // The C view that a kernel gets. Valid as long as the Problem lives.
  const attn_problem& abi() const;
  attn_problem& mutable_abi();

  // Exact input values after rounding to storage, logical row-major order (no padding), as doubles.
  // forward: q, k, v. step: m, l, acc, scores, v. merge: m, l, acc with a leading axis `parts`.
  std::span<const double> input(const std::string& tensor) const;
  double scale() const;

  // Visibility of key j for query i, from the case's masks alone (the oracle's own predicate).
  bool visible(std::int64_t batch, std::int64_t q_head, std::int64_t i, std::int64_t j) const;
  // Whether some row of some query head that reads this kv head sees key j.
  bool key_seen(std::int64_t batch, std::int64_t kv_head, std::int64_t j) const;

  // Output values as doubles (exact), logical row-major order. forward: "o", "lse"; step and merge: "m", "l", "acc".
  std::vector<double> output(const std::string& tensor) const;
  // Raw bits of an output in logical order, for bitwise comparison; -0 is given as +0.
  std::vector<std::uint64_t> output_bits(const std::string& tensor) const;
  bool has_output(const std::string& tensor) const;

  // Fills every output element with the byte pattern again (a second run on the same inputs).
  void prefill(std::uint8_t pattern);

  // "" if inputs, padding, and guard zones still hold what was put there, else what changed and where.
  std::string untouched_report() const;

  // On guard pages (oracle/buffer.h), a write to an input, a mask or kv_len ends the process while they are read-only.
  void protect_inputs(bool read_only);

  // All memory that the problem's pointers address: payload and guard zones of every buffer, one span for each, in a
  // fixed order. For a copy of the whole problem in another memory, and for the way back.
  std::vector<std::span<std::byte>> memory();

  // merge: points abi().a, .b at parts x and y of the case.
  void select_parts(std::int64_t x, std::int64_t y);

  // Overwrites one input element (storage rounding applied); used by laws that vary a value.
  void set_input(const std::string& tensor, std::int64_t logical_index, double value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bytes that a Problem of this case will take, without making it.
double problem_bytes(const Case& c, const Formats& formats);

}  // namespace attest
