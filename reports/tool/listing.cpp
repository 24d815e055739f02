#include "reports/tool/listing.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "impl/registry.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::string_view op_name(std::int32_t op) {
  return op == ATTN_OP_STEP ? "step" : op == ATTN_OP_MERGE ? "merge" : "forward";
}

std::string promises(std::uint64_t bits) {
  const std::pair<std::uint64_t, const char*> known[] = {
      {ATTN_PROMISE_DETERMINISTIC, "deterministic"},
      {ATTN_PROMISE_ROW_ISOLATED, "row-isolated"},
      {ATTN_PROMISE_BATCH_INVARIANT, "batch-invariant"},
      {ATTN_PROMISE_LAYOUT_INVARIANT, "layout-invariant"},
      {ATTN_PROMISE_HEAD_PACKING_INVARIANT, "head-packing-invariant"},
      {ATTN_PROMISE_TILING_INVARIANT, "tiling-invariant"},
      {ATTN_PROMISE_COMMUTATIVE_MERGE, "commutative-merge"}};
  std::string out;
  for (const auto& [bit, word] : known)
    if (bits & bit) out += (out.empty() ? "" : ", ") + std::string(word);
  return out.empty() ? "none" : out;
}

}  // namespace

int list_kernels(const Selection& selection) {
  const std::vector<LoadedKernel> kernels = select_kernels(selection);
  std::size_t wide = 6, contract = 8;
  for (const LoadedKernel& k : kernels) {
    wide = std::max(wide, k.kernel.name.size());
    contract = std::max(contract, k.kernel.contract_name.size());
  }
  for (const LoadedKernel& k : kernels)
    std::cout << text("%-*s  %-7s  %-*s  %s\n", static_cast<int>(wide), k.kernel.name.c_str(),
                      std::string(op_name(k.kernel.abi->op)).c_str(), static_cast<int>(contract),
                      k.kernel.contract_name.c_str(), promises(k.kernel.abi->contract.promises).c_str());
  return 0;
}

int show_contract(const Selection& selection, const std::string& name) {
  const attn_contract* contract = attn::find_preset(name.c_str());
  const std::vector<LoadedKernel> kernels = select_kernels(selection);
  for (const LoadedKernel& k : kernels)
    if (k.kernel.name == name) contract = &k.kernel.abi->contract;
  if (!contract)
    throw UsageError("no kernel or preset is named " + name + "; `" + tool_command() + " kernels` lists them");
  std::cout << name << ": " << contract_name(*contract) << "\n";
  for (const ContractField& f : contract_fields(*contract))
    std::cout << text("  %-20s %-14s %s\n", std::string(f.name).c_str(), f.value.c_str(),
                      std::string(f.meaning).c_str());
  std::cout << "  promises             " << promises(contract->promises) << "\n";
  std::cout << text("u is the unit roundoff of the accumulator: 2^-%d\n", contract->acc_dtype == ATTN_FP64 ? 53 : 24);
  std::cout << "sources: " << (contract->sources ? contract->sources : "none stated") << "\n";
  return 0;
}

int list_laws() {
  std::size_t wide = 0;
  for (const Law& law : laws()) wide = std::max(wide, law.name.size());
  for (const Law& law : laws())
    std::cout << text("%-*s  %s\n", static_cast<int>(wide), std::string(law.name).c_str(),
                      std::string(law.statement).c_str());
  return 0;
}

}  // namespace attest
