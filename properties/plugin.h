// Kernels from a shared library, through the same door as our own: one exported table, checked before it is believed.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "properties/law.h"

namespace attest {

// Says which file, what was found and what is needed, on one line.
struct PluginError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Plugin {
  std::string path;
  std::string name;
  std::vector<Kernel> kernels;  // in the order of the library's table
};

// Opens the library and checks ABI version, struct sizes, every kernel's fields and every Contract. The library stays
// loaded until the process ends: kernels may own threads. Raises PluginError.
Plugin load_plugin(const std::string& path);

// One constant of a Contract, for listings, hashes and comparison.
struct ContractField {
  std::string_view name;
  std::string value;  // exact: integers, enumerators by name, doubles in shortest form that reads back
  double number = 0;  // the same as a number
  std::string_view meaning;
};
std::vector<ContractField> contract_fields(const attn_contract& contract);

// "" if every field is in its range and fits the operation, else the first that does not, and its range.
std::string contract_problem(const attn_contract& contract, std::int32_t op);

// The preset's name if every constant equals it, else "custom, ..." with the nearest preset of the same algorithm and
// formats: "k times looser than PRESET" (see plugin_contract.cpp for k), "weaker than PRESET in FIELDS" where a flag,
// an order, a promise or an allowance is, both, or "no looser than PRESET" if nothing is; "unlike any preset" if there
// is none to compare with.
std::string contract_name(const attn_contract& contract);

}  // namespace attest
