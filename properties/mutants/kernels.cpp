// Mutants as kernels: the C interface around the readable kernels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

#include "impl/registry.h"
#include "properties/mutants/mutants.h"

namespace attest::mutants {
namespace {

// The C interface has no user data: one function per bug, all of them one line. Only what promises a merge of splits
// makes any: others keep all keys in one, as our kernels do.
template <Bug bug, bool in_splits>
int32_t run(const attn_problem* p, void*, std::size_t, char*, std::size_t) {
  switch (p->op) {
    case ATTN_OP_STEP:
      return run_step(bug, *p);
    case ATTN_OP_MERGE:
      return run_merge(bug, *p);
    default:
      attn_problem forward = *p;
      if (!in_splits) forward.tiling.splits = 1;
      return run_forward(bug, forward);
  }
}

using Run = int32_t (*)(const attn_problem*, void*, std::size_t, char*, std::size_t);

template <bool in_splits, std::size_t... i>
constexpr std::array<Run, sizeof...(i)> runs(std::index_sequence<i...>) {
  return {run<static_cast<Bug>(i), in_splits>...};
}
constexpr std::array<Run, kBugs> kWhole = runs<false>(std::make_index_sequence<kBugs>()),
                                 kInSplits = runs<true>(std::make_index_sequence<kBugs>());

int32_t reject(char* why, std::size_t size, const char* reason) {
  std::snprintf(why, size, "%s", reason);
  return ATTN_REJECTED;
}

template <int32_t state_kind>
int32_t supports_state(const attn_problem* p, char* why, std::size_t size) {
  return p->state_kind == state_kind ? ATTN_OK : reject(why, size, "another kind of state");
}

template <bool takes_negative_scale>
int32_t supports_forward(const attn_problem* p, char* why, std::size_t size) {
  if (p->k.shape[1] == 0 || p->q.shape[1] % p->k.shape[1] != 0) return reject(why, size, "Hq is no multiple of Hkv");
  const float s = static_cast<float>(p->scale);
  if (!(takes_negative_scale ? s != 0 : s > 0) || !std::isfinite(s))
    return reject(why, size, "scale must be finite and positive");
  if (p->softcap != 0 || p->mask.window_left >= 0 || p->mask.window_right >= 0 || p->bias.data || p->sinks.data) {
    return reject(why, size, "softcap, window, bias and sinks are reserved");
  }
  return ATTN_OK;
}

std::size_t quadratic_workspace(const attn_problem* p) {
  return p->op == ATTN_OP_FORWARD ? static_cast<std::size_t>(64 * 1024 + 4 * p->q.shape[2] * p->k.shape[2] * 64) : 0;
}

Kernel make_kernel(Bug bug, std::string name, std::string_view preset) {
  static std::deque<std::pair<std::string, attn_kernel>> storage;  // stable addresses for the C structs
  // A preset of step or merge may be followed by the kind of state: ".ml", ".mla", ".olse".
  const std::string_view kind = preset.substr(preset.rfind('.'));
  const bool named = kind == ".ml" || kind == ".mla" || kind == ".olse";
  const std::string_view base = named ? preset.substr(0, preset.size() - kind.size()) : preset;
  const attn_contract* contract = attn::find_preset(std::string(base).c_str());
  if (!contract) throw std::logic_error("mutant " + name + " names the unknown Contract " + std::string(preset));
  auto& [text, abi] = storage.emplace_back(std::move(name), attn_kernel{});
  abi.struct_size = sizeof(attn_kernel);
  abi.op = contract->algorithm == ATTN_ALG_STEP    ? ATTN_OP_STEP
           : contract->algorithm == ATTN_ALG_MERGE ? ATTN_OP_MERGE
                                                   : ATTN_OP_FORWARD;
  abi.name = text.c_str();
  abi.summary = "a planted bug";
  abi.contract = *contract;
  if (abi.op == ATTN_OP_FORWARD)
    abi.supports = bug == Bug::scale_unchecked ? supports_forward<true> : supports_forward<false>;
  else
    abi.supports = kind == ".olse" ? supports_state<ATTN_STATE_OLSE>
                   : kind == ".ml" ? supports_state<ATTN_STATE_ML>
                                   : supports_state<ATTN_STATE_MLA>;
  abi.workspace_size = bug == Bug::workspace_quadratic ? quadratic_workspace : nullptr;
  abi.run = (contract->split_merge != ATTN_MERGE_NONE ? kInSplits : kWhole)[static_cast<std::size_t>(bug)];
  return {&abi, text, "mutants", std::string(preset), {&abi}};
}

}  // namespace

std::vector<Kernel> mutant_kernels() {
  std::vector<Kernel> all;
  for (const Mutant& m : table()) all.push_back(make_kernel(m.bug, "mutant." + std::string(m.name), m.preset));
  return all;
}

std::vector<Kernel> control_kernels() {
  std::vector<std::string_view> presets;
  for (const Mutant& m : table()) {
    if (std::find(presets.begin(), presets.end(), m.preset) == presets.end()) presets.push_back(m.preset);
  }
  std::vector<Kernel> all;
  for (std::string_view p : presets)
    all.push_back(make_kernel(p == "fp32.standard" ? Bug::none_whole_row : Bug::none, "control." + std::string(p), p));
  return all;
}

}  // namespace attest::mutants
