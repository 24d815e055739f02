#include "impl/tests/support.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "impl/core/format.h"
#include "impl/registry.h"

namespace attn::test {

std::uint64_t Noise::bits() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
double Noise::unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
double Noise::normal() {
  double sum = -6;
  for (int t = 0; t < 12; ++t) sum += unit();
  return sum;
}

namespace {

Index element_size(std::int32_t dtype) {
  return dtype == ATTN_FP64 ? 8 : dtype == ATTN_FP32 ? 4 : dtype == ATTN_U8 ? 1 : 2;
}

}  // namespace

Tensor::Tensor(std::int32_t dtype, std::vector<Index> shape, std::vector<int> order, Index gap) {
  view_.dtype = dtype;
  view_.rank = static_cast<std::int32_t>(shape.size());
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  Index stride = 1;
  for (std::size_t t = order.size(); t-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[t]);
    view_.shape[axis] = shape[axis];
    view_.stride[axis] = stride;
    stride = stride * std::max<Index>(shape[axis], 1) + (t + 1 == order.size() ? gap : 0);
  }
  bytes_ = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(stride * element_size(dtype)), 0xff);
  view_.data = bytes_->data();
}

Index Tensor::offset(const std::vector<Index>& at) const {
  Index offset = 0;
  for (std::size_t a = 0; a < at.size(); ++a) offset += at[a] * view_.stride[a];
  return offset * element_size(view_.dtype);
}

double Tensor::get(const std::vector<Index>& at) const {
  const std::uint8_t* p = bytes_->data() + offset(at);
  double wide = 0;
  float single = 0;
  std::uint16_t half = 0;
  switch (view_.dtype) {
    case ATTN_FP64:
      std::memcpy(&wide, p, 8);
      return wide;
    case ATTN_FP32:
      std::memcpy(&single, p, 4);
      return single;
    case ATTN_U8:
      return *p;
    default:
      std::memcpy(&half, p, 2);
  }
  return view_.dtype == ATTN_FP16 ? to_float(Half{half}) : to_float(Bfloat16{half});
}

void Tensor::set(const std::vector<Index>& at, double value) {
  std::uint8_t* p = bytes_->data() + offset(at);
  const float single = static_cast<float>(value);
  const std::uint16_t half = view_.dtype == ATTN_FP16 ? to_half(single).bits : to_bfloat16(single).bits;
  switch (view_.dtype) {
    case ATTN_FP64:
      std::memcpy(p, &value, 8);
      break;
    case ATTN_FP32:
      std::memcpy(p, &single, 4);
      break;
    case ATTN_U8:
      *p = static_cast<std::uint8_t>(value);
      break;
    default:
      std::memcpy(p, &half, 2);
  }
}

std::uint64_t Tensor::bits(const std::vector<Index>& at) const {
  if (get(at) == 0) return 0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes_->data() + offset(at), static_cast<std::size_t>(element_size(view_.dtype)));
  return bits;
}

void Tensor::fill_bytes(std::uint8_t byte) { std::fill(bytes_->begin(), bytes_->end(), byte); }

std::string Options::text() const {
  std::ostringstream out;
  out << "batch " << batch << " heads " << q_heads << "/" << kv_heads << " tq " << tq << " tk " << tk << " d " << d_qk
      << "/" << d_v << " causal " << causal << " kv_len " << kv_len.size() << " boolean " << boolean << " additive "
      << additive << " block " << block_q << "x" << block_k << " splits " << splits << " threads " << threads
      << " magnitude " << magnitude << " layout " << layout << " seed " << seed;
  return out.str();
}

Forward::Forward(const Options& s, const attn_kernel& of) : options(s), kernel(of) {
  const std::int32_t in = kernel.contract.in_dtype, wide = kernel.contract.acc_dtype;
  const std::vector<int> order = s.layout == 1   ? std::vector<int>{0, 2, 1, 3}
                                 : s.layout == 2 ? std::vector<int>{3, 1, 0, 2}
                                                 : std::vector<int>{};
  const Index gap = s.layout == 1 ? 3 : 0;
  q = Tensor(in, {s.batch, s.q_heads, s.tq, s.d_qk}, order, gap);
  k = Tensor(in, {s.batch, s.kv_heads, s.tk, s.d_qk}, order, gap);
  v = Tensor(in, {s.batch, s.kv_heads, s.tk, s.d_v}, order, gap);
  o = Tensor(s.wide_output ? wide : in, {s.batch, s.q_heads, s.tq, s.d_v}, order, gap);
  lse = Tensor(wide, {s.batch, s.q_heads, s.tq});
  Noise noise(s.seed);
  for (Tensor* t : {&q, &k, &v}) {
    const attn_tensor shape = t->view();
    for (Index b = 0; b < shape.shape[0]; ++b)
      for (Index h = 0; h < shape.shape[1]; ++h)
        for (Index i = 0; i < shape.shape[2]; ++i)
          for (Index e = 0; e < shape.shape[3]; ++e) t->set({b, h, i, e}, noise.normal() * (t == &q ? s.magnitude : 1));
  }
  problem.struct_size = sizeof problem;
  problem.op = ATTN_OP_FORWARD;
  problem.q = q.view();
  problem.k = k.view();
  problem.v = v.view();
  problem.o = o.view();
  problem.lse = lse.view();
  problem.scale = s.scale;
  problem.mask.causal = s.causal;
  problem.mask.kv_len = options.kv_len.empty() ? nullptr : options.kv_len.data();
  problem.mask.window_left = problem.mask.window_right = -1;
  problem.tiling = {s.block_q, s.block_k, s.splits, s.threads, 0};
  for (int which = 0; which < 2; ++which) {
    if (!(which == 0 ? s.boolean : s.additive)) continue;
    Tensor& mask = which == 0 ? boolean : additive;
    mask = Tensor(which == 0 ? ATTN_U8 : ATTN_FP32, {s.batch, s.q_heads, s.tq, s.tk});
    for (Index b = 0; b < s.batch; ++b)
      for (Index h = 0; h < s.q_heads; ++h)
        for (Index i = 0; i < s.tq; ++i)
          for (Index j = 0; j < s.tk; ++j) {
            const bool hidden = noise.below(3) == 0 || (i == 1 && which == 0);  // row 1 sees nothing
            mask.set({b, h, i, j}, which == 0 ? !hidden : hidden ? -INFINITY : 0);
          }
    (which == 0 ? problem.mask.visible : problem.mask.additive) = mask.view();
  }
}

std::string Forward::run() {
  char why[256] = "";
  if (kernel.supports(&problem, why, sizeof why) != ATTN_OK) return std::string("rejected: ") + why;
  const std::size_t bytes = kernel.workspace_size(&problem);
  std::vector<std::uint8_t> memory(bytes + 128, 0xcd);
  auto* at = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  const std::int32_t status = kernel.run(&problem, bytes ? at : nullptr, bytes, why, sizeof why);
  if (at[bytes] != 0xcd) return "wrote past the workspace";
  return status == ATTN_OK ? "" : std::string("failed: ") + why;
}

bool Forward::visible(Index b, Index h, Index i, Index j) const {
  if (options.causal == ATTN_CAUSAL_TOP_LEFT && j > i) return false;
  if (options.causal == ATTN_CAUSAL_BOTTOM_RIGHT && j > i + options.tk - options.tq) return false;
  if (!options.kv_len.empty() && j >= options.kv_len[static_cast<std::size_t>(b)]) return false;
  if (options.boolean && boolean.get({b, h, i, j}) == 0) return false;
  return !options.additive || additive.get({b, h, i, j}) == 0;
}

std::vector<std::uint64_t> Forward::output_bits() const {
  std::vector<std::uint64_t> all;
  for (Index b = 0; b < options.batch; ++b)
    for (Index h = 0; h < options.q_heads; ++h)
      for (Index i = 0; i < options.tq; ++i) {
        for (Index e = 0; e < options.d_v; ++e) all.push_back(o.bits({b, h, i, e}));
        all.push_back(lse.bits({b, h, i}));
      }
  return all;
}

std::string Forward::compare() const {
  using Real = long double;
  const attn_contract& c = kernel.contract;
  const Real u = c.acc_dtype == ATTN_FP64 ? 0x1p-53L : 0x1p-24L;
  const Real u_weight = c.p_dtype == ATTN_FP16 ? 0x1p-11L : c.p_dtype == ATTN_BF16 ? 0x1p-8L : 0;
  const std::int32_t out = o.view().dtype;
  const Real u_out = out == ATTN_FP16 ? 0x1p-11L : out == ATTN_BF16 ? 0x1p-8L : 0;
  const Real scale = c.acc_dtype == ATTN_FP64 ? options.scale : static_cast<float>(options.scale);
  for (Index b = 0; b < options.batch; ++b)
    for (Index h = 0; h < options.q_heads; ++h)
      for (Index i = 0; i < options.tq; ++i) {
        const Index kv = h / (options.q_heads / options.kv_heads);
        std::vector<Real> x(static_cast<std::size_t>(options.tk), -INFINITY),
            sum(static_cast<std::size_t>(options.d_v), 0);
        Real m = -INFINITY, l = 0, absolute = 0, v_max = 0, x_max = 0;
        for (Index j = 0; j < options.tk; ++j) {
          if (!visible(b, h, i, j)) continue;
          Real dot = 0, size = 0;
          for (Index e = 0; e < options.d_qk; ++e) {
            const Real term = static_cast<Real>(q.get({b, h, i, e})) * k.get({b, kv, j, e});
            dot += term;
            size += fabsl(term);
          }
          x[static_cast<std::size_t>(j)] = dot;
          m = std::max(m, dot);
          absolute = std::max(absolute, size);
          x_max = std::max(x_max, fabsl(dot));
        }
        for (Index j = 0; j < options.tk; ++j) {
          if (!visible(b, h, i, j)) continue;
          const Real p = expl(scale * (x[static_cast<std::size_t>(j)] - m));
          l += p;
          for (Index e = 0; e < options.d_v; ++e) {
            sum[static_cast<std::size_t>(e)] += p * v.get({b, kv, j, e});
            v_max = std::max(v_max, fabsl(static_cast<Real>(v.get({b, kv, j, e}))));
          }
        }
        // First order: a weight is off by the two dot products, the argument's two roundings and exp; at most tk
        // blocks rescale or normalise; sums have tk terms. 1.25 covers the second order of these small problems.
        const Real argument =
            scale * 2 * (static_cast<Real>(options.d_qk) * u * absolute) + 4 * u * scale * x_max + 2 * u;
        const Real chain = static_cast<Real>(options.tk) * 8 * u + 8 * u;
        const Real lse_want = l > 0 ? scale * m + logl(l) : -INFINITY;
        const Real o_bound =
            1.25L * v_max * (2 * argument + u_weight + chain + u_out) + (out == ATTN_FP16 ? 0x1p-25L : 0);
        const Real lse_bound = 1.25L * (argument + chain + 4 * u * (scale * fabsl(m) + fabsl(lse_want)));
        const auto describe = [&](const char* what, Index e, Real got, Real want, Real bound) {
          std::ostringstream text;
          text << kernel.name << ": " << what << "[" << b << "," << h << "," << i << "," << e << "] is " << got
               << ", want " << want << " within " << bound << "; " << options.text();
          return text.str();
        };
        for (Index e = 0; e < options.d_v; ++e) {
          const Real got = o.get({b, h, i, e});
          const Real want = l > 0 ? sum[static_cast<std::size_t>(e)] / l : 0;
          if (!(fabsl(got - want) <= o_bound)) return describe("o", e, got, want, o_bound);
        }
        const Real got = lse.get({b, h, i});
        if (l > 0 ? !(fabsl(got - lse_want) <= lse_bound) : got != -INFINITY)
          return describe("lse", 0, got, lse_want, lse_bound);
      }
  return "";
}

const attn_kernel& kernel_named(const std::string& name) {
  for (const attn_kernel& kernel : cpu_kernels())
    if (name == kernel.name) return kernel;
  throw std::runtime_error("no kernel named " + name);
}

std::vector<const attn_kernel*> forward_kernels() {
  std::vector<const attn_kernel*> all;
  for (const attn_kernel& kernel : cpu_kernels())
    if (kernel.op == ATTN_OP_FORWARD) all.push_back(&kernel);
  return all;
}

}  // namespace attn::test
