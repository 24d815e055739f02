// GPU mutants as kernels: the C interface around the readable CUDA kernel. Plain C++, in every build.
#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include "impl/contracts.h"
#include "impl/core/tile_schedule.h"
#include "impl/registry.h"
#include "impl/validate.h"
#include "properties/mutants/cuda/device_mutants.h"

namespace attest::mutants {

std::int64_t split_count(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p) {
  if (flavour != DeviceFlavour::split) return 1;
  if (p.tiling.splits > 0) return p.tiling.splits;
  return bug == DeviceBug::splits_by_batch ? std::max<std::int64_t>(1, p.q.shape[0]) : kDeviceSplits;
}

// Two maxima, q, O and the weights in fp32, a tile of values in their own format.
std::int64_t shared_bytes(DeviceFlavour flavour, const attn_problem& p) {
  const std::int64_t asked = p.tiling.block_k > 0 ? p.tiling.block_k : kDeviceKeys, tk = p.k.shape[2];
  const std::int64_t keys = std::max<std::int64_t>(1, std::min(asked, tk)), width = p.v.shape[3];
  const std::int64_t values = keys * width * (flavour == DeviceFlavour::fp16 ? 2 : 4);
  return 4 * (2 + p.q.shape[3] + width + keys) + (values + 3) / 4 * 4;
}

std::int64_t partial_bytes(DeviceBug bug, DeviceFlavour flavour, const attn_problem& p) {
  if (flavour != DeviceFlavour::split) return 0;
  const std::int64_t block = p.tiling.block_k > 0 ? p.tiling.block_k : kDeviceKeys, tk = p.k.shape[2];
  const std::int64_t parts =
      std::max<std::int64_t>(1, attn::plan_splits(tk, split_count(bug, flavour, p), block).used());
  return 4 * parts * p.q.shape[0] * p.q.shape[1] * p.q.shape[2] * (p.v.shape[3] + 1);
}

namespace {

using enum DeviceFlavour;

// The C interface has no user data: one set of functions for each.
template <DeviceBug bug, DeviceFlavour flavour>
struct Functions {
  static std::int32_t supports(const attn_problem* p, char* why, std::size_t size) {
    attn::Requirements needs;
    needs.storage = flavour == fp16 ? ATTN_FP16 : ATTN_FP32;
    const std::int32_t status = attn::validate_forward(*p, needs, attn::Reads::nothing, why, size);
    if (status != ATTN_OK) return status;
    if (shared_bytes(flavour, *p) <= kMostShared) return ATTN_OK;
    std::snprintf(why, size, "a tile of tiling.block_k keys does not fit into shared memory; ask for fewer");
    return ATTN_REJECTED;
  }
  static std::size_t workspace_size(const attn_problem* p) {
    return static_cast<std::size_t>(partial_bytes(bug, flavour, *p));
  }
  static std::int32_t run(const attn_problem* p, void* workspace, std::size_t, char* why, std::size_t size) {
    return run_device_forward(bug, flavour, *p, workspace, why, size);
  }
};

// What the kernel promises: the exp2 of the device, products by FMAs, sums by warps.
attn_contract contract_of(DeviceFlavour flavour) {
  attn_contract c = attn::preset(attn::ContractFormat::fp32_exp2, flavour == split ? ATTN_ALG_SPLIT : ATTN_ALG_FA2);
  if (flavour == fp16) {
    c.preset = nullptr;
    c.in_dtype = c.p_dtype = ATTN_FP16;
  }
  c.default_block_q = 1;
  c.default_block_k = kDeviceKeys;
  if (flavour == split) c.max_splits = kDeviceSplits;
  c.workspace_per_thread = 0;
  return c;
}

template <DeviceBug bug, DeviceFlavour flavour>
Kernel make_kernel(std::string name, std::string_view preset) {
  static std::deque<std::pair<std::string, attn_kernel>> storage;  // stable addresses for the C structs
  auto& [text, abi] = storage.emplace_back(std::move(name), attn_kernel{});
  using F = Functions<bug, flavour>;
  abi = {sizeof(attn_kernel),  ATTN_OP_FORWARD,
         text.c_str(),         bug == DeviceBug::none ? "no bug" : "a planted bug",
         contract_of(flavour), F::supports,
         F::workspace_size,    F::run,
         ATTN_DEVICE_CUDA,     0};
  return {&abi, text, "mutants", std::string(preset), {&abi}};
}

using Make = Kernel (*)(std::string, std::string_view);
template <DeviceFlavour flavour, std::size_t... bugs>
constexpr std::array<Make, sizeof...(bugs)> makers(std::index_sequence<bugs...>) {
  return {make_kernel<static_cast<DeviceBug>(bugs), flavour>...};
}

Kernel make(DeviceBug bug, DeviceFlavour flavour, std::string name, std::string_view preset) {
  constexpr auto all = std::make_index_sequence<static_cast<std::size_t>(DeviceBug::accumulator_in_16_bit) + 1>();
  static constexpr auto single = makers<fp32>(all), half = makers<fp16>(all), parts = makers<split>(all);
  const auto& of = flavour == fp32 ? single : flavour == fp16 ? half : parts;
  return of[static_cast<std::size_t>(bug)](std::move(name), preset);
}

}  // namespace

std::vector<Kernel> device_mutant_kernels() {
  std::vector<Kernel> out;
  for (const DeviceMutant& m : device_table())
    out.push_back(make(m.bug, m.flavour, "mutant." + std::string(m.facts.name), m.facts.preset));
  return out;
}

std::vector<Kernel> device_control_kernels() {
  std::vector<Kernel> out;
  for (const auto& control : {std::pair{fp32, "fp32"}, std::pair{fp16, "fp16"}, std::pair{split, "split"}}) {
    const auto row = std::find_if(device_table().begin(), device_table().end(),
                                  [&](const DeviceMutant& m) { return m.flavour == control.first; });
    out.push_back(
        make(DeviceBug::none, control.first, std::string("control.cuda.") + control.second, row->facts.preset));
  }
  return out;
}

}  // namespace attest::mutants
