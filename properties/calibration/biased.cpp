#include "properties/calibration/biased.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "impl/registry.h"
#include "properties/mutants/tensor.h"

namespace attest::calibration {
namespace {

using mutants::load_at;
using mutants::offset;

// Spread over the keys, the same at every call.
bool chosen(std::int64_t key, int percent) {
  return static_cast<std::uint32_t>(key) * 2654435761u >> 8 < (1u << 24) / 100.0 * percent;
}

void run_row(const attn_problem& p, int percent, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::int64_t kv = h / (p.q.shape[1] / p.k.shape[1]), columns = p.v.shape[3];
  const std::int64_t shift = p.mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT ? p.k.shape[2] - p.q.shape[2] : 0;
  const std::int64_t end =
      p.mask.causal == ATTN_CAUSAL_NONE ? p.k.shape[2] : std::clamp<std::int64_t>(i + 1 + shift, 0, p.k.shape[2]);
  const std::int64_t block = p.tiling.block_k > 0 ? p.tiling.block_k : 32;
  const auto scale = static_cast<float>(p.scale);
  std::vector<float> o(columns, 0.0f), x(block);
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  for (std::int64_t first = 0; first < end; first += block) {
    const std::int64_t last = std::min(end, first + block);
    float top = m;
    for (std::int64_t j = first; j < last; ++j) {
      float s = 0;
      for (std::int64_t c = 0; c < p.q.shape[3]; ++c)
        s = std::fma(load_at(p.q, offset(p.q, b, h, i, c)), load_at(p.k, offset(p.k, b, kv, j, c)), s);
      x[j - first] = s;
      top = std::max(top, s);
    }
    const float rescale = first == 0 ? 0 : mutants::exp_f(scale * (m - top));
    m = top;
    l *= rescale;
    for (float& y : o) y *= rescale;
    for (std::int64_t j = first; j < last; ++j) {
      const float w = mutants::exp_f(scale * (x[j - first] - m));
      l += w;
      const float kept = chosen(j, percent) ? mutants::truncate_to(ATTN_BF16, w) : mutants::round_to(ATTN_BF16, w);
      for (std::int64_t e = 0; e < columns; ++e) o[e] = std::fma(kept, load_at(p.v, offset(p.v, b, kv, j, e)), o[e]);
    }
  }
  for (std::int64_t e = 0; e < columns; ++e) mutants::store_at(p.o, offset(p.o, b, h, i, e), l > 0 ? o[e] / l : 0);
  if (p.lse.data)
    mutants::store_at(p.lse, b * p.lse.stride[0] + h * p.lse.stride[1] + i * p.lse.stride[2],
                      l > 0 ? m * scale + mutants::log_f(l) : m);
}

template <int percent>
std::int32_t run(const attn_problem* p, void*, std::size_t, char*, std::size_t) {
  for (std::int64_t b = 0; b < p->q.shape[0]; ++b)
    for (std::int64_t h = 0; h < p->q.shape[1]; ++h)
      for (std::int64_t i = 0; i < p->q.shape[2]; ++i) run_row(*p, percent, b, h, i);
  return ATTN_OK;
}

// The law `unbiased` asks for causal masks at most.
std::int32_t supports(const attn_problem* p, char*, std::size_t) {
  return p->mask.kv_len || p->mask.visible.data || p->mask.additive.data ? ATTN_REJECTED : ATTN_OK;
}

template <int percent>
const attn_kernel* abi(const char* name) {
  static const attn_kernel kernel = {
      sizeof(attn_kernel), ATTN_OP_FORWARD, name, "a small bias", *attn::find_preset("bf16.p16.fa2"), supports, nullptr,
      run<percent>,        ATTN_DEVICE_CPU, 0};
  return &kernel;
}

}  // namespace

std::vector<Biased> biased_kernels() {
  const auto make = [](const attn_kernel* k, const char* bias) {
    return Biased{{k, k->name, "calibration", k->contract.preset, {k}}, bias};
  };
  return {make(abi<0>("biased.none"), "none"),
          make(abi<10>("biased.p-truncated-10"), "P truncated at 10 % of the keys"),
          make(abi<25>("biased.p-truncated-25"), "P truncated at 25 % of the keys"),
          make(abi<50>("biased.p-truncated-50"), "P truncated at 50 % of the keys"),
          make(abi<100>("biased.p-truncated-100"), "P truncated at every key")};
}

}  // namespace attest::calibration
