// Values of every input tensor from (family, seed, parameters, shape). One random stream for each tensor, so that a
// change of one tensor's extent leaves the others alone.
#include "oracle/recipe.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "oracle/case_error.h"
#include "oracle/format.h"
#include "oracle/npy.h"
#include "oracle/philox.h"
#include "oracle/score_plan.h"

namespace attest {
namespace {

// Stream ids. They are part of the recipes: changing one changes every golden hash.
enum StreamId : std::uint64_t {
  q_stream = 1,
  k_stream,
  v_stream,
  m_stream,
  l_stream,
  acc_stream,
  scores_stream,
  second = 0x100  // added for a second, independent draw for the same element
};

double sign_of(std::uint64_t bits) { return bits & 1 ? -1.0 : 1.0; }

// A random subnormal of one of the formats that the case allows: (1 + u) 2^e, e from below to far below the normal
// range. For `any` the entries take turns among fp16, fp32 and fp64, as no number is subnormal in all of them.
double subnormal(DType format, std::uint64_t bits, double u) {
  constexpr DType turns[] = {DType::fp16, DType::fp32, DType::fp64};
  if (format == DType::any) format = turns[(bits >> 8) % 3];
  int top = -15, count = 10;  // fp16: 2^-15 to 2^-24
  if (format == DType::fp32) top = -127, count = 23;
  if (format == DType::bf16) top = -127, count = 7;
  if (format == DType::fp64) top = -1023, count = 52;
  const int exponent = top - static_cast<int>((bits >> 16) % static_cast<unsigned>(count));
  return sign_of(bits) * (1 + u) * power_of_two(exponent);
}

// (1 + u) 2^e with e uniform in -reach .. reach, random sign; the cut to the format's range comes later.
double wide(double reach, std::uint64_t bits, double u) {
  const auto n = static_cast<std::uint64_t>(reach);
  const int exponent = static_cast<int>((bits >> 1) % (2 * n + 1)) - static_cast<int>(n);
  return sign_of(bits) * (1 + u) * power_of_two(exponent);
}

class Recipe {
 public:
  explicit Recipe(const Case& c) : c_(c), v_(c.values), plan_(plan_scores(c)) {}

  Named<std::vector<double>> make() {
    for (const char* name : {"q", "k", "v", "m", "l", "acc", "scores"})
      if (!input_shape(c_, name).empty()) out_[name];
    // What literals replace is not made: laws that cut and fold a case give all of its numbers.
    if (c_.op == Op::forward) {
      if (!given({"q", "k"})) queries_and_keys();
    } else if (!given({"m", "l", "acc"})) {
      states();
    }
    if (c_.op == Op::step && !given({"scores"})) scores();
    if (c_.op != Op::merge && !input_shape(c_, "v").empty() && !given({"v"})) values();
    for (auto& [name, xs] : out_) {
      // Kept finite in storage (accumulators are at least fp32). -inf is a value of m and of scores.
      const bool stored = same_name(name, "q") || same_name(name, "k") || same_name(name, "v");
      const double most = stored ? largest(c_.dtype) : largest(c_.dtype == DType::fp64 ? DType::fp64 : DType::fp32);
      for (double& x : xs)
        if (std::isfinite(x)) x = std::clamp(x, -most, most);
    }
    return std::move(out_);
  }

 private:
  bool family(std::string_view name) const { return same_name(v_.family, name); }
  // One parameter is asked for at every element: the last answer is kept.
  double value(std::string_view name) const {
    if (!same_name(name, last_name_)) last_value_ = parameter(v_, name), last_name_ = name;
    return last_value_;
  }
  // Whether literals stand for all of these tensors, as far as the case has them. They then have their sizes only.
  bool given(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto is_it = [&](const auto& entry) { return same_name(tensor_name(c_, entry.first), name); };
      if (!input_shape(c_, name).empty() && std::none_of(v_.tensors.begin(), v_.tensors.end(), is_it)) return false;
    }
    for (const char* name : names)
      if (!input_shape(c_, name).empty()) tensor(name);
    return true;
  }
  // References to tensors stay good: all of them are there, without elements, before the first is filled.
  std::vector<double>& tensor(const char* name) {
    auto& xs = out_.at(name);
    xs.resize(static_cast<std::size_t>(element_count(input_shape(c_, name))));
    return xs;
  }

  // One entry of a tensor that is drawn, not steered: q and k, scores, or V where the family says nothing of it.
  double draw(RandomStream& first, RandomStream& other, std::uint64_t i, bool is_v) const {
    if (family("gaussian")) return value("sigma") * first.normal(i);
    if (family("uniform")) return 2 * first.uniform(i) - 1;
    if (family("outliers")) {
      const double x = first.normal(i);
      return other.uniform(2 * i) < value("share") ? x + value("sigma") * other.normal(2 * i + 1) : x;
    }
    if (family("wide-range")) return wide(value(is_v ? "exponent" : "exponent_qk"), other.bits(i), first.uniform(i));
    return first.normal(i);
  }

  // V of a key (or part): row `row` of `keys`, column e; i is the index of the element, head and batch its origin.
  double v_element(RandomStream& first, RandomStream& other, std::uint64_t i, std::int64_t batch, std::int64_t head,
                   std::int64_t row, std::int64_t keys, std::int64_t e) const {
    if (family("one-hot-v")) return row % c_.shape.d_v == e ? 1 : 0;
    if (family("index-v")) {
      const int axis = static_cast<int>(value("axis"));
      return static_cast<double>(axis == 0 ? head : axis == 1 ? batch : row);
    }
    if (family("two-level")) return 2 * row < keys ? 0 : 1;
    if (family("cancelling-v")) return (row % 2 == 0 ? 1 : -1) * value("value") + first.normal(i);
    if (family("subnormal") && value("tensor") != 1) return subnormal(c_.dtype, other.bits(i), first.uniform(i));
    if (family("constant-v")) return value("value");
    if (family("zeros")) return 0;
    return draw(first, other, i, true);
  }

  void queries_and_keys() {
    auto& q = tensor("q");
    auto& k = tensor("k");
    RandomStream q1(v_.seed, q_stream), q2(v_.seed, q_stream + second);
    RandomStream k1(v_.seed, k_stream), k2(v_.seed, k_stream + second);
    if (plan_.steered) {
      steer_forward(q, k, q1, k1);
      return;
    }
    const bool flat = family("constant-large") || family("zeros");
    const double constant = family("zeros") ? 0 : value("value");
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = flat ? constant : draw(q1, q2, i, false);
    for (std::size_t i = 0; i < k.size(); ++i) {
      if (flat) {
        k[i] = constant;
      } else if (family("two-level")) {
        k[i] = 0;  // scores are 0 exactly, whatever q is
      } else if (family("subnormal") && value("tensor") != 0) {
        k[i] = subnormal(c_.dtype, k2.bits(i), k1.uniform(i));
      } else {
        k[i] = draw(k1, k2, i, false);
      }
    }
  }

  // Coordinate 0 carries delta, the next one base, so that a small delta is not lost beside a large base; the rest is
  // noise that makes the other columns matter. Where d_qk is 1, one coordinate carries the sum.
  void steer_forward(std::vector<double>& q, std::vector<double>& k, RandomStream& q1, RandomStream& k1) const {
    const Shape& s = c_.shape;
    const double scale = c_.effective_scale();
    const double most = largest(c_.dtype);
    double delta_most = 0;
    for (double d : plan_.delta) delta_most = std::max(delta_most, std::abs(d));
    const bool together = s.d_qk == 1;
    const bool has_delta = delta_most > 0, has_base = plan_.base != 0;
    const Steering delta = steer(together ? delta_most + std::abs(plan_.base) : delta_most, scale, most);
    const Steering base = steer(std::abs(plan_.base), scale, most);
    const std::int64_t used = together ? (has_delta || has_base) : std::int64_t{has_delta} + has_base;
    const std::int64_t base_at = has_delta ? 1 : 0;
    // scale * sum of `rest` products of N(0, a^2) pairs has standard deviation scale * sqrt(rest) * a^2.
    const double rest = static_cast<double>(s.d_qk - used);
    const double usable = std::isfinite(scale) && scale > 0 ? scale : 1;
    const double a = rest > 0 ? std::min(std::sqrt(plan_.noise / (usable * std::sqrt(rest))), 64.0) : 0;

    const auto d = static_cast<std::uint64_t>(s.d_qk);
    for (std::size_t i = 0; i < q.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i % d);
      if (column >= used) {
        q[i] = a * q1.normal(i);
      } else {
        q[i] = together || (has_delta && column == 0) ? delta.q : base.q;
      }
    }
    for (std::size_t i = 0; i < k.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i % d);
      const auto key = static_cast<std::int64_t>(i / d) % s.tk;
      if (column >= used) {
        const std::int64_t group = plan_.sharing == 0 ? 0 : key - key % plan_.sharing;
        k[i] = a * k1.normal(i - static_cast<std::uint64_t>(key - group) * d);
        continue;
      }
      const double step = has_delta ? plan_.delta[static_cast<std::size_t>(key)] : 0;
      if (together) {
        k[i] = delta.k(step + plan_.base);
      } else {
        k[i] = has_base && column == base_at ? base.k(plan_.base) : delta.k(step);
      }
    }
  }

  // A score drawn directly, for step and merge: row i, key (or part) j, index n of the element.
  double score(RandomStream& first, RandomStream& other, std::int64_t i, std::int64_t j, std::uint64_t n) const {
    if (plan_.steered) {
      const auto row = static_cast<std::uint64_t>(i);
      const auto group = static_cast<std::uint64_t>(plan_.sharing == 2 ? j / 2 : 0);
      const double noise = plan_.sharing == 1 ? first.normal(n) : first.normal(row << 20 ^ group);
      const double step = plan_.delta.empty() ? 0 : plan_.delta[static_cast<std::size_t>(j)];
      return plan_.base + step + plan_.noise * noise;
    }
    if (family("constant-large")) return std::min(value("value") * value("value"), 0x1p1000);
    if (family("zeros") || family("two-level")) return 0;
    if (family("wide-range")) return wide(2 * value("exponent_qk"), other.bits(n), first.uniform(n));
    return draw(first, other, n, false);
  }

  void scores() {
    auto& x = tensor("scores");
    RandomStream first(v_.seed, scores_stream), other(v_.seed, scores_stream + second);
    std::uint64_t n = 0;
    for (std::int64_t i = 0; i < c_.shape.tq; ++i)
      for (std::int64_t j = 0; j < c_.shape.tk; ++j, ++n) x[n] = score(first, other, i, j, n);
    for (const MaskTensor* m : {&c_.mask.visible, &c_.mask.additive}) {
      if (!m->present()) continue;
      const MaskValues mask = make_mask(*m, c_.shape, c_.tiling.block_k);
      n = 0;
      for (std::int64_t i = 0; i < c_.shape.tq; ++i)
        for (std::int64_t j = 0; j < c_.shape.tk; ++j, ++n) {
          const std::int64_t row = mask.shape[2] == 1 ? 0 : i, key = mask.shape[3] == 1 ? 0 : j;
          if (!mask.visible[static_cast<std::size_t>(row * mask.shape[3] + key)])
            x[n] = -std::numeric_limits<double>::infinity();
        }
    }
    n = 0;
    for (std::int64_t i = 0; i < c_.shape.tq; ++i)
      for (std::int64_t j = 0; j < c_.shape.tk; ++j, ++n) {
        const Mask& m = c_.mask;
        const bool causal_blocks = (m.causal == Causal::top_left && j > i) ||
                                   (m.causal == Causal::bottom_right && j > i + c_.shape.tk - c_.shape.tq);
        if (causal_blocks || (!m.kv_len.empty() && j >= m.kv_len[0])) x[n] = -std::numeric_limits<double>::infinity();
      }
  }

  void values() {
    auto& v = tensor("v");
    const Shape& s = c_.shape;
    RandomStream first(v_.seed, v_stream), other(v_.seed, v_stream + second);
    std::uint64_t n = 0;
    const std::int64_t batch = c_.op == Op::forward ? s.batch : 1, heads = c_.op == Op::forward ? s.kv_heads : 1;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t j = 0; j < s.tk; ++j)
          for (std::int64_t e = 0; e < s.d_v; ++e, ++n) v[n] = v_element(first, other, n, b, h, j, s.tk, e);
  }

  // States as the fold of some keys would leave them: m a score, l in [1, 17), acc = l times a plausible O. A step has
  // one state, a merge has `parts` of them, and part x plays the role of key block x.
  void states() {
    const Shape& s = c_.shape;
    const bool merge = c_.op == Op::merge, olse = c_.state == StateKind::olse;
    auto& m = tensor("m");
    auto* const l = olse ? nullptr : &tensor("l");
    auto* const acc = c_.state == StateKind::ml ? nullptr : &tensor("acc");
    RandomStream m1(v_.seed, m_stream), m2(v_.seed, m_stream + second), l1(v_.seed, l_stream);
    RandomStream a1(v_.seed, acc_stream), a2(v_.seed, acc_stream + second);
    const std::int64_t parts = merge ? s.parts : 1;
    const int emptiness = static_cast<int>(value("state"));
    std::uint64_t n = 0;
    for (std::int64_t x = 0; x < parts; ++x)
      for (std::int64_t i = 0; i < s.tq; ++i, ++n) {
        const bool empty = emptiness == 0 || (emptiness == 2 && l1.uniform(2 * n + 1) < 0.25);
        const bool no_key = !merge && s.tk == 0;
        const double top = no_key ? m1.normal(n) : score(m1, m2, i, merge ? x : 0, n);
        const double sum = 1 + 16 * l1.uniform(2 * n);
        m[n] = empty ? -std::numeric_limits<double>::infinity() : olse ? top + ieee_log(sum) : top;
        if (l) (*l)[n] = empty ? 0 : sum;
        if (!acc) continue;
        for (std::int64_t e = 0; e < s.d_v; ++e) {
          const std::uint64_t at = n * static_cast<std::uint64_t>(s.d_v) + static_cast<std::uint64_t>(e);
          const double o = v_element(a1, a2, at, 0, 0, x, parts, e);
          (*acc)[at] = empty ? 0 : olse ? o : sum * o;
        }
      }
  }

  const Case& c_;
  const Values& v_;
  const ScorePlan plan_;
  mutable std::string_view last_name_;  // of a literal
  mutable double last_value_ = 0;
  Named<std::vector<double>> out_;
};

}  // namespace

Named<std::vector<double>> make_values(const Case& c) {
  auto tensors = Recipe(c).make();
  for (const auto& [written, literal] : c.values.tensors) {
    const auto field = [&, &its = written] { return "values.tensors." + printable(its); };
    const auto at = tensors.find(tensor_name(c, written));
    if (at == tensors.end()) case_error("case", field(), "the operation has no such tensor; check its name");
    std::vector<double> xs =
        literal.npy.empty() ? literal.literal : read_npy(c.directory + "/" + literal.npy, field()).values;
    if (xs.size() != at->second.size())
      case_error("case", field(),
                 std::to_string(xs.size()) + " numbers where the shape asks for " + std::to_string(at->second.size()) +
                     "; give one for each element");
    at->second = std::move(xs);
  }
  return tensors;
}

}  // namespace attest
