#include "properties/tests/grid.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

#include "impl/registry.h"
#include "properties/generate.h"

namespace attest::grid {
namespace {

constexpr double kTolerance = 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Inputs {
  std::int64_t tq, tk, d_qk, d_v;
  std::vector<double> q, k, v;
};

struct Result {
  std::vector<double> o, lse;
};

Inputs make_inputs(std::int64_t tq, std::int64_t tk, std::int64_t d_qk, std::int64_t d_v) {
  Inputs in{tq, tk, d_qk, d_v, {}, {}, {}};
  Random random(static_cast<std::uint64_t>(((tq * 65 + tk) * 65 + d_qk) * 65 + d_v));
  for (auto [tensor, n] : {std::pair{&in.q, tq * d_qk}, {&in.k, tk * d_qk}, {&in.v, tk * d_v}})
    for (std::int64_t i = 0; i < n; ++i) tensor->push_back(random.unit() * 4 - 2);
  return in;
}

double score(const Inputs& in, std::int64_t i, std::int64_t j) {
  double s = 0;
  for (std::int64_t c = 0; c < in.d_qk; ++c) s += in.q[i * in.d_qk + c] * in.k[j * in.d_qk + c];
  return s / std::sqrt(static_cast<double>(in.d_qk));
}

// The definition: all scores of a row, their maximum, the sum, the average.
Result two_pass(const Inputs& in, bool causal) {
  Result r{std::vector<double>(in.tq * in.d_v, 0.0), std::vector<double>(in.tq, -kInfinity)};
  for (std::int64_t i = 0; i < in.tq; ++i) {
    const std::int64_t n = causal ? std::min(in.tk, i + 1) : in.tk;
    std::vector<double> p(n);
    double m = -kInfinity, l = 0;
    for (std::int64_t j = 0; j < n; ++j) m = std::max(m, p[j] = score(in, i, j));
    for (double& x : p) l += x = std::exp(x - m);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t e = 0; e < in.d_v; ++e) r.o[i * in.d_v + e] += p[j] * in.v[j * in.d_v + e] / l;
    r.lse[i] = m + std::log(l);
  }
  return r;
}

attn_tensor tensor(const std::vector<double>& data, const std::vector<std::int64_t>& shape) {
  attn_tensor t{};
  t.data = const_cast<double*>(data.data());
  t.dtype = ATTN_FP64;
  t.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t a = shape.size(); a-- > 0;) {
    t.shape[a] = shape[a];
    t.stride[a] = stride;
    stride *= shape[a];
  }
  return t;
}

attn_problem empty_problem(std::int32_t op) {
  attn_problem p{};
  p.struct_size = sizeof p;
  p.op = op;
  p.scale = 1;
  p.mask.window_left = p.mask.window_right = -1;
  p.tiling.threads = 1;
  return p;
}

std::string run(const attn_kernel& kernel, const attn_problem& p) {
  static std::vector<std::max_align_t> memory;
  char why[256] = "";
  if (kernel.supports(&p, why, sizeof why) != ATTN_OK) return std::string(kernel.name) + " rejects: " + why;
  const std::size_t bytes = kernel.workspace_size ? kernel.workspace_size(&p) : 0;
  memory.resize(bytes / sizeof(std::max_align_t) + 16);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  void* aligned = reinterpret_cast<void*>((address + 63) / 64 * 64);
  if (kernel.run(&p, aligned, bytes, why, sizeof why) != ATTN_OK) return std::string(kernel.name) + " fails: " + why;
  return "";
}

std::string compare(const Result& got, const Result& want) {
  const auto differs = [](const std::vector<double>& a, const std::vector<double>& b, const char* name) {
    for (std::size_t n = 0; n < b.size(); ++n)
      if (!(std::abs(a[n] - b[n]) <= kTolerance) && a[n] != b[n])
        return std::string(name) + "[" + std::to_string(n) + "] = " + std::to_string(a[n]) + ", want " +
               std::to_string(b[n]);
    return std::string();
  };
  const std::string o = differs(got.o, want.o, "o");
  return o.empty() ? differs(got.lse, want.lse, "lse") : o;
}

std::string run_forward(const attn_kernel& kernel, const Inputs& in, bool causal, std::int64_t block, Result& out) {
  attn_problem p = empty_problem(ATTN_OP_FORWARD);
  std::fill(out.o.begin(), out.o.end(), std::numeric_limits<double>::quiet_NaN());
  p.q = tensor(in.q, {1, 1, in.tq, in.d_qk});
  p.k = tensor(in.k, {1, 1, in.tk, in.d_qk});
  p.v = tensor(in.v, {1, 1, in.tk, in.d_v});
  p.o = tensor(out.o, {1, 1, in.tq, in.d_v});
  p.lse = tensor(out.lse, {1, 1, in.tq});
  p.scale = 1 / std::sqrt(static_cast<double>(in.d_qk));
  p.mask.causal = causal ? ATTN_CAUSAL_TOP_LEFT : ATTN_CAUSAL_NONE;
  // Query blocks of other sizes than key blocks: equal ones hide mistakes in tile bounds.
  p.tiling.block_q = 1 + (block * 7 + in.tq) % (in.tq + 1);
  p.tiling.block_k = block;
  p.tiling.splits = kernel.contract.split_merge == ATTN_MERGE_NONE ? 0 : 1 + (block + in.tk) % 5;
  return run(kernel, p);
}

std::string fold_step(const attn_kernel& kernel, const Inputs& in, bool causal, std::int64_t block, Result& out) {
  std::vector<double> m(in.tq, -kInfinity), l(in.tq, 0.0), acc(in.tq * in.d_v, 0.0);
  std::vector<double> m2 = m, l2 = l, acc2 = acc, scores, values;
  for (std::int64_t begin = 0; begin < in.tk; begin += block) {
    const std::int64_t end = std::min(begin + block, in.tk), b = end - begin;
    scores.clear();
    for (std::int64_t i = 0; i < in.tq; ++i)
      for (std::int64_t j = begin; j < end; ++j) scores.push_back(causal && j > i ? -kInfinity : score(in, i, j));
    values.assign(in.v.begin() + begin * in.d_v, in.v.begin() + end * in.d_v);
    attn_problem p = empty_problem(ATTN_OP_STEP);
    p.state_kind = ATTN_STATE_MLA;
    p.a = {tensor(m, {in.tq}), tensor(l, {in.tq}), tensor(acc, {in.tq, in.d_v})};
    p.out = {tensor(m2, {in.tq}), tensor(l2, {in.tq}), tensor(acc2, {in.tq, in.d_v})};
    p.scores = tensor(scores, {in.tq, b});
    p.v = tensor(values, {b, in.d_v});
    if (std::string why = run(kernel, p); !why.empty()) return why;
    std::swap(m, m2), std::swap(l, l2), std::swap(acc, acc2);
  }
  for (std::int64_t i = 0; i < in.tq; ++i) {
    out.lse[i] = m[i] + std::log(l[i]);
    for (std::int64_t e = 0; e < in.d_v; ++e) out.o[i * in.d_v + e] = acc[i * in.d_v + e] / l[i];
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::int64_t, std::int64_t>> dimensions() {
  const std::vector<std::int64_t> sizes{1, 2, 3, 7, 8, 31, 32, 33, 63, 64};
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (std::int64_t d : sizes)
    for (std::int64_t d_v : sizes) out.emplace_back(d, d_v);
  return out;
}

std::vector<const attn_kernel*> kernels() {
  std::vector<const attn_kernel*> out;
  for (const attn_kernel& k : attn::cpu_kernels()) {
    if (k.contract.in_dtype != ATTN_FP64 || k.contract.acc_dtype != ATTN_FP64) continue;
    if (k.op == ATTN_OP_FORWARD) out.push_back(&k);
    if (k.op != ATTN_OP_STEP) continue;
    // Only the step that carries an accumulator can be folded into an output.
    std::vector<std::vector<double>> x(8, std::vector<double>(1, 1.0));
    attn_problem p = empty_problem(ATTN_OP_STEP);
    p.state_kind = ATTN_STATE_MLA;
    p.a = {tensor(x[0], {1}), tensor(x[1], {1}), tensor(x[2], {1, 1})};
    p.out = {tensor(x[3], {1}), tensor(x[4], {1}), tensor(x[5], {1, 1})};
    p.scores = tensor(x[6], {1, 1});
    p.v = tensor(x[7], {1, 1});
    char why[256] = "";
    if (k.supports(&p, why, sizeof why) == ATTN_OK) out.push_back(&k);
  }
  return out;
}

std::string check(std::int64_t tq, std::int64_t tk, std::int64_t d_qk, std::int64_t d_v,
                  const std::vector<std::int64_t>& block_sizes) {
  static const auto subjects = kernels();
  // A kernel for causal problems only has no plain half of the grid.
  static const auto causal_only = [](const attn_kernel* k) {
    return std::string_view(k->name).find("causal") != std::string_view::npos;
  };
  const Inputs in = make_inputs(tq, tk, d_qk, d_v);
  for (const bool causal : {false, true}) {
    const Result want = two_pass(in, causal);
    for (const attn_kernel* kernel : subjects)
      for (const std::int64_t block : block_sizes) {
        if (!causal && causal_only(kernel)) continue;
        Result got = want;
        std::string why = kernel->op == ATTN_OP_STEP ? fold_step(*kernel, in, causal, block, got)
                                                     : run_forward(*kernel, in, causal, block, got);
        if (why.empty()) why = compare(got, want);
        if (!why.empty())
          return std::string(kernel->name) + " at Tq=" + std::to_string(tq) + " Tk=" + std::to_string(tk) +
                 " d=" + std::to_string(d_qk) + " d_v=" + std::to_string(d_v) + " block=" + std::to_string(block) +
                 (causal ? " causal: " : ": ") + why;
      }
  }
  return "";
}

}  // namespace attest::grid
