// The .npy format (NumPy enhancement proposal 1), versions 1 to 3: what a .case may name as the values of a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attest {

struct Npy {
  std::string type;                 // "<f8", "<f4", "<f2" or "|u1"
  std::vector<std::int64_t> shape;  // C order
  std::vector<double> values;       // exact
};

// Every fault raises CaseError that names the file, `field` (of the case that asked for it) and what is wrong with it.
// The file's size is checked against its header before anything is allocated.
Npy read_npy(const std::string& path, const std::string& field);

// Header and size only; values stay empty.
Npy read_npy_header(const std::string& path, const std::string& field);

// Writes version 1 with type "<f8" or "<f4" (rounded to nearest). std::runtime_error if the file cannot be written.
void write_npy(const std::string& path, const std::string& type, const std::vector<std::int64_t>& shape,
               const std::vector<double>& values);

// Number of elements, or -1 if an extent is negative or the product overflows.
std::int64_t element_count(std::span<const std::int64_t> shape);

}  // namespace attest
