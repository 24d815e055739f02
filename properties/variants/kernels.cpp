// Variants as kernels: the C interface around the instances of forward.h and state.h.
#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <exception>
#include <string>
#include <utility>

#include "impl/validate.h"
#include "properties/plugin.h"
#include "properties/variants/flush.h"
#include "properties/variants/forward.h"
#include "properties/variants/state.h"
#include "properties/variants/table.h"
#include "properties/variants/variants.h"

namespace attest::variants {
namespace {

template <ContractFormat format>
using Acc = std::conditional_t<format == ContractFormat::fp64, double, float>;

template <std::size_t index>
std::int32_t supports(const attn_problem* p, char* why, std::size_t size) {
  constexpr Recipe r = table[index].recipe;
  if constexpr (r.flushes_subnormals && !can_flush) {
    std::snprintf(why, size, "flushing subnormals is built for x86-64 alone");
    return ATTN_REJECTED;
  }
  const attn_contract& c = attn::preset(r.format, r.algorithm);
  const attn::Requirements needs{c.in_dtype, c.acc_dtype, false, table[index].state};
  if constexpr (r.algorithm == ATTN_ALG_STEP) return attn::validate_step(*p, needs, why, size);
  if constexpr (r.algorithm == ATTN_ALG_MERGE) return attn::validate_merge(*p, needs, why, size);
  return attn::validate_forward(*p, needs, attn::Reads::entries, why, size);
}

// Heads, or the rows of a single one, are shared among threads unless the recipe has another use for those.
template <class T, Recipe r>
void run_forward(const attn_problem& p) {
  const attn::Index heads = p.q.shape[1], tq = p.q.shape[2];
  const attn::Index rows = p.tiling.block_q > 0 ? p.tiling.block_q : 64;
  const attn::Index blocks = (tq + rows - 1) / rows, tasks = p.q.shape[0] * heads;
  const attn::Index threads = r.threads_share_keys ? 1 : std::clamp<attn::Index>(p.tiling.threads, 1, 64);
  attn::parallel_for(tasks > 1 ? threads : 1, tasks, [&](attn::Index task, attn::Index) {
    const Forward<T, r> forward(p, task / heads, task % heads);
    attn::parallel_for(tasks > 1 ? 1 : threads, blocks, [&](attn::Index block, attn::Index) {
      const FlushToZero flush(r.flushes_subnormals);
      for (attn::Index i = block * rows; i < std::min(tq, (block + 1) * rows); ++i) forward.row(i);
    });
  });
}

template <std::size_t index>
std::int32_t run(const attn_problem* p, void*, std::size_t, char* why, std::size_t size) {
  constexpr Recipe r = table[index].recipe;
  using T = Acc<r.format>;
  try {
    if constexpr (r.algorithm == ATTN_ALG_STEP)
      run_step<T, r>(*p);
    else if constexpr (r.algorithm == ATTN_ALG_MERGE)
      run_merge<T, r>(*p);
    else
      run_forward<T, r>(*p);
  } catch (const std::exception& e) {  // memory
    std::snprintf(why, size, "%s", e.what());
    return ATTN_ERROR;
  }
  return ATTN_OK;
}

template <std::size_t index>
attn_kernel make_kernel() {
  constexpr Variant v = table[index];
  constexpr std::int32_t algorithm = v.recipe.algorithm;
  constexpr std::int32_t op = algorithm == ATTN_ALG_STEP    ? ATTN_OP_STEP
                              : algorithm == ATTN_ALG_MERGE ? ATTN_OP_MERGE
                                                            : ATTN_OP_FORWARD;
  return {sizeof(attn_kernel), op,      v.name,     v.summary,       contract_of(v.recipe),
          supports<index>,     nullptr, run<index>, ATTN_DEVICE_CPU, 0};
}

template <std::size_t... index>
std::array<attn_kernel, sizeof...(index)> make_kernels(std::index_sequence<index...>) {
  return {make_kernel<index>()...};
}

}  // namespace

std::vector<Kernel> variant_kernels() {
  struct Table {
    std::array<attn_kernel, table.size()> abi = make_kernels(std::make_index_sequence<table.size()>());
    std::deque<std::string> names;  // stable addresses for the C structs
    Table() {
      for (attn_kernel& k : abi) k.name = names.emplace_back(std::string("variant.") + k.name).c_str();
    }
  };
  static const Table built;
  std::vector<Kernel> out;
  for (const attn_kernel& k : built.abi) out.push_back({&k, k.name, "variants", contract_name(k.contract), {&k}});
  return out;
}

}  // namespace attest::variants
