#include "properties/field/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/format.h"

namespace attest::field {
namespace {

std::vector<double> read(const attn_tensor& t, DType format) {
  const auto* bytes = static_cast<const std::byte*>(t.data);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]));
  for (std::int64_t b = 0; b < t.shape[0]; ++b)
    for (std::int64_t h = 0; h < t.shape[1]; ++h)
      for (std::int64_t i = 0; i < t.shape[2]; ++i)
        for (std::int64_t e = 0; e < t.shape[3]; ++e) {
          const std::int64_t at = b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + e * t.stride[3];
          out.push_back(decode(format, load_bits(format, bytes + at * bytes_of(format))));
        }
  return out;
}

struct Rounding {
  DType format;
  double operator()(double x) const { return format == DType::fp64 ? x : round_to(format, x); }
};

std::vector<double> scaled(const std::vector<double>& x, double factor, Rounding round) {
  std::vector<double> out(x.size());
  std::transform(x.begin(), x.end(), out.begin(), [&](double y) { return round(y * factor); });
  return out;
}

}  // namespace

Inputs read_inputs(const Problem& problem) {
  const attn_problem& p = problem.abi();
  const DType format = problem.formats().storage;
  return {read(p.q, format), read(p.k, format), read(p.v, format)};
}

Outputs attend(const Problem& problem, const Inputs& in, const Arithmetic& a, const Change& change,
               std::vector<double>* magnitude) {
  const Shape& s = problem.source().shape;
  const auto format = [&](DType f) { return Rounding{f == DType::any ? problem.formats().storage : f}; };
  const Rounding score = format(a.scores), weight = format(a.weights), result = format(a.output);
  const double scale = problem.scale() * change.scale;
  const std::vector<double> q = a.scale == Arithmetic::Scale::q ? scaled(in.q, scale, score) : in.q;
  const std::vector<double> k = a.scale == Arithmetic::Scale::k ? scaled(in.k, scale, score) : in.k;
  const double cap = problem.abi().softcap;
  const double factor = a.scale == Arithmetic::Scale::scores ? scale : 1;
  const std::int64_t group = s.q_heads / s.kv_heads;

  Outputs out;
  const std::int64_t rows = s.batch * s.q_heads * s.tq;
  out.o.reserve(static_cast<std::size_t>(rows * s.d_v));
  out.lse.reserve(static_cast<std::size_t>(rows));
  if (magnitude) magnitude->clear();
  std::vector<std::int64_t> key;
  std::vector<double> p, sum, mass;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t b = row / (s.q_heads * s.tq), h = row / s.tq % s.q_heads, i = row % s.tq;
    const std::int64_t head = b * s.kv_heads + h / group;
    const double* qi = q.data() + row * s.d_qk;
    key.clear(), p.clear();
    for (std::int64_t j = 0; j < s.tk; ++j) {
      if (j == change.dropped || (j != change.leaked && !problem.visible(b, h, i, j))) continue;
      const double* kj = k.data() + (head * s.tk + j) * s.d_qk;
      double x = 0;
      for (std::int64_t e = 0; e < s.d_qk; ++e) x += qi[e] * kj[e];
      x = score(factor * x);
      key.push_back(j), p.push_back(cap > 0 ? score(cap * std::tanh(x / cap)) : x);
    }
    sum.assign(static_cast<std::size_t>(s.d_v), 0), mass = sum;
    double total = 0, top = -std::numeric_limits<double>::infinity();
    for (double x : p) top = std::max(top, x);
    for (double& x : p) total += x = std::exp(x - top);
    for (std::size_t n = 0; n < p.size(); ++n) {
      const double w = a.normalised_weights ? weight(p[n] / total) : weight(p[n]);
      const double* vj = in.v.data() + (head * s.tk + key[n]) * s.d_v;
      for (std::int64_t e = 0; e < s.d_v; ++e) sum[e] += w * vj[e], mass[e] += w * std::fabs(vj[e]);
    }
    const double divisor = a.normalised_weights || key.empty() ? 1 : total;
    for (double x : sum) out.o.push_back(result(x / divisor));
    if (magnitude)
      for (double x : mass) magnitude->push_back(x / divisor);
    out.lse.push_back(round_to(DType::fp32, top + std::log(total)));
  }
  return out;
}

Reference reference_for(const Project& project, const Problem& problem, const Inputs& inputs) {
  Reference r;
  r.want = attend(problem, inputs, project.want, {}, &r.magnitude);
  r.unfused = attend(problem, inputs, project.unfused).o;
  return r;
}

}  // namespace attest::field
