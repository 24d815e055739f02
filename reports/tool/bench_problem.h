// Where the tensors of a cell lie in one block of device memory, and the problem that a kernel gets.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/tool/bench_cells.h"

namespace attest {

// A dense row-major tensor.
struct BenchField {
  std::string name;
  std::int32_t dtype = ATTN_FP32;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  // bytes from the begin of the block; a multiple of 256

  std::int64_t count() const;
  std::size_t bytes() const;
};

// Inputs come in several sets, which calls take in turn: together at least four times the L2 cache, so that a call does
// not find its inputs there. Outputs and the reference's outputs are shared by the sets.
struct BenchLayout {
  std::vector<BenchField> outputs, reference;
  std::vector<std::vector<BenchField>> sets;
  std::size_t bytes = 0;

  const BenchField* find(const std::string& name, std::size_t set) const;  // of an input
};

// The first 256 bytes are left free.
BenchLayout bench_layout(const BenchCell& cell, std::size_t l2_bytes);

// A kernel's problem on a set of inputs, at `base`; O and LSE (or m and l) go to the outputs, or to the reference's.
// Without operation for a copy and a product of matrices, which no kernel computes.
attn_problem bench_problem(const BenchCell& cell, const BenchLayout& layout, std::byte* base, std::size_t set,
                           bool to_reference);

// May this kernel be timed in this cell by default? Operation and format match, and its family is made for the shape;
// what else it asks, its supports() says.
bool suits_cell(const attn_kernel& kernel, const BenchCell& cell);

}  // namespace attest
