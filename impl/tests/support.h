// Tensors, problems and a naive attention for the kernels' own tests. Independent of the harness: the kernels are
// tested here against a definition in long double, with a first-order bound that follows from their arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "impl/attention.h"

namespace attn::test {

using Index = std::int64_t;

// Reproducible noise (splitmix64).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  double unit();    // [0, 1)
  double normal();  // roughly N(0, 1): the sum of 12 uniforms less 6
  Index below(Index n) { return static_cast<Index>(bits() % static_cast<std::uint64_t>(n)); }

 private:
  std::uint64_t state_;
};

// A tensor with its storage. order lists axes from the outermost to the innermost in memory; gap elements are left
// between rows of the innermost axis.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::int32_t dtype, std::vector<Index> shape, std::vector<int> order = {}, Index gap = 0);

  attn_tensor view() const { return view_; }
  attn_tensor& mutable_view() { return view_; }
  double get(const std::vector<Index>& at) const;
  void set(const std::vector<Index>& at, double value);    // rounds to the format
  std::uint64_t bits(const std::vector<Index>& at) const;  // -0 is given as +0
  void fill_bytes(std::uint8_t byte);
  const std::vector<std::uint8_t>& bytes() const { return *bytes_; }

 private:
  Index offset(const std::vector<Index>& at) const;
  attn_tensor view_{};
  std::shared_ptr<std::vector<std::uint8_t>> bytes_;
};

struct Options {
  Index batch = 1, q_heads = 1, kv_heads = 1, tq = 4, tk = 5, d_qk = 4, d_v = 3;
  std::int32_t causal = ATTN_CAUSAL_NONE;
  std::vector<Index> kv_len;
  bool boolean = false, additive = false;  // random masks, a third of the keys hidden
  Index block_q = 0, block_k = 0, splits = 0;
  std::int32_t threads = 0;
  double scale = 0.5, magnitude = 1;
  int layout = 0;           // 0: dense; 1: heads inside rows, padded; 2: elements outermost
  bool wide_output = true;  // O in the accumulator format
  std::uint64_t seed = 1;
  std::string text() const;
};

// A forward problem with random values.
struct Forward {
  Forward(const Options& options, const attn_kernel& kernel);
  // Runs the kernel; the reason if it did not.
  std::string run();
  bool visible(Index b, Index h, Index i, Index j) const;
  // O then LSE in logical order.
  std::vector<std::uint64_t> output_bits() const;
  // "" or the first element that is off the definition by more than the kernel's arithmetic explains.
  std::string compare() const;

  Options options;
  const attn_kernel& kernel;
  attn_problem problem{};
  Tensor q, k, v, o, lse, boolean, additive;
};

const attn_kernel& kernel_named(const std::string& name);
std::vector<const attn_kernel*> forward_kernels();

}  // namespace attn::test
