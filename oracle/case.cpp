#include "oracle/case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "oracle/case_error.h"
#include "oracle/number.h"

namespace attest {

bool TensorValues::operator==(const TensorValues& other) const {
  return npy == other.npy && same_bits(literal, other.literal);
}

bool Values::operator==(const Values& other) const {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first && same_bits(a.second, b.second); };
  return family == other.family && seed == other.seed && tensors == other.tensors &&
         std::equal(parameters.begin(), parameters.end(), other.parameters.begin(), other.parameters.end(), same);
}

bool MaskTensor::operator==(const MaskTensor& other) const {
  return pattern == other.pattern && seed == other.seed && same_bits(density, other.density) &&
         mask_shape == other.mask_shape && literal == other.literal;
}

bool Reserved::operator==(const Reserved& other) const {
  return same_bits(softcap, other.softcap) && window_left == other.window_left && window_right == other.window_right &&
         bias == other.bias && sinks == other.sinks;
}

bool Expected::operator==(const Expected& other) const {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first && same_bits(a.second, b.second); };
  return same_bits(tolerance, other.tolerance) &&
         std::equal(tensors.begin(), tensors.end(), other.tensors.begin(), other.tensors.end(), same);
}

bool Case::operator==(const Case& other) const {
  const bool scales_equal = scale.has_value() == other.scale.has_value() && (!scale || same_bits(*scale, *other.scale));
  return scales_equal && about == other.about && op == other.op && state == other.state && dtype == other.dtype &&
         out == other.out && shape == other.shape && q_layout == other.q_layout && k_layout == other.k_layout &&
         v_layout == other.v_layout && o_layout == other.o_layout && mask == other.mask && tiling == other.tiling &&
         values == other.values && reserved == other.reserved && expected == other.expected &&
         kernels == other.kernels && laws == other.laws;
}

double Case::effective_scale() const { return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(shape.d_qk)); }

std::string_view name(Op op) {
  switch (op) {
    case Op::step:
      return "step";
    case Op::merge:
      return "merge";
    case Op::forward:
      return "forward";
  }
  return "?";
}

std::string_view name(StateKind kind) {
  switch (kind) {
    case StateKind::ml:
      return "ml";
    case StateKind::mla:
      return "mla";
    case StateKind::olse:
      return "olse";
  }
  return "?";
}

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::any:
      return "any";
    case DType::fp64:
      return "fp64";
    case DType::fp32:
      return "fp32";
    case DType::fp16:
      return "fp16";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

std::string_view name(OutDType out) { return out == OutDType::storage ? "storage" : "accumulator"; }

std::string_view name(Causal causal) {
  switch (causal) {
    case Causal::none:
      return "none";
    case Causal::top_left:
      return "top-left";
    case Causal::bottom_right:
      return "bottom-right";
  }
  return "?";
}

std::string_view tensor_name(const Case& c, std::string_view written) {
  if (c.op != Op::forward && c.state == StateKind::olse) {
    if (same_name(written, "lse")) return "m";
    if (same_name(written, "o")) return "acc";
  }
  return written;
}

Extents input_shape(const Case& c, std::string_view tensor) {
  const Shape& s = c.shape;
  if (c.op == Op::forward) {
    if (same_name(tensor, "q")) return {s.batch, s.q_heads, s.tq, s.d_qk};
    if (same_name(tensor, "k")) return {s.batch, s.kv_heads, s.tk, s.d_qk};
    if (same_name(tensor, "v")) return {s.batch, s.kv_heads, s.tk, s.d_v};
    return {};
  }
  if (c.op == Op::step && same_name(tensor, "scores")) return {s.tq, s.tk};
  if (c.op == Op::step && same_name(tensor, "v") && c.state != StateKind::ml) return {s.tk, s.d_v};
  const Extents shape = output_shape(c, tensor);
  if (c.op != Op::merge || shape.empty()) return shape;
  return shape.size() == 1 ? Extents{s.parts, shape[0]} : Extents{s.parts, shape[0], shape[1]};
}

Extents output_shape(const Case& c, std::string_view tensor) {
  const Shape& s = c.shape;
  if (c.op == Op::forward) {
    if (same_name(tensor, "o")) return {s.batch, s.q_heads, s.tq, s.d_v};
    if (same_name(tensor, "lse")) return {s.batch, s.q_heads, s.tq};
    return {};
  }
  if (same_name(tensor, "m")) return {s.tq};
  if (same_name(tensor, "l") && c.state != StateKind::olse) return {s.tq};
  if (same_name(tensor, "acc") && c.state != StateKind::ml) return {s.tq, s.d_v};
  return {};
}

double memory_limit() {
  // A mistyped size should be refused, not tried; who means it says so.
  const char* asked = std::getenv("ATTEST_CASE_GIB");
  const double gib = asked ? std::strtod(asked, nullptr) : 4;
  const double most = (gib > 0 ? gib : 4) * 1024 * 1024 * 1024;
  // MemAvailable of /proc/meminfo, in KiB; where there is none the fixed limit stands.
  std::ifstream in("/proc/meminfo");
  std::string word;
  double kib = 0;
  while (in >> word)
    if (word == "MemAvailable:" && in >> kib) return std::min(most, 0.75 * 1024 * kib);
  return most;
}

std::string printable(std::string_view text, std::size_t limit) {
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (char c : text) {
    if (s.size() >= limit) return s + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      s += c;
    } else {
      s += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return s;
}

void case_error(std::string_view origin, std::string_view field, std::string_view reason) {
  throw CaseError(printable(origin, 300) + ": " + printable(field, 200) + ": " + printable(reason, 600));
}

}  // namespace attest
