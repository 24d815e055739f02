// validate(): whether a case can be made into a problem at all. What a kernel may refuse (an odd scale, a reserved
// option) is not an error here.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "oracle/case.h"
#include "oracle/case_error.h"
#include "oracle/npy.h"
#include "oracle/problem.h"
#include "oracle/recipe.h"

namespace attest {
namespace {

class Check {
 public:
  Check(const Case& c, const std::string& origin) : c_(c), origin_(origin) {}

  void all() {
    shape();
    options();
    memory();  // before anything is counted or read
    mask();
    values();
  }

 private:
  // The name of a field comes in pieces, put together only for a message: every problem that is made is checked first.
  struct FieldName {
    std::string_view group, name = {}, part = {};
    FieldName(const char* whole) : group(whole) {}
    FieldName(std::string_view its_group, std::string_view its_name, std::string_view its_part = {})
        : group(its_group), name(its_name), part(its_part) {}
    std::string text() const { return std::string(group) + printable(name) + std::string(part); }
  };

  [[noreturn]] void fail(const FieldName& field, const std::string& reason) const {
    case_error(origin_, field.text(), reason);
  }

  void range(const FieldName& field, std::int64_t value, std::int64_t lo, std::int64_t hi) const {
    if (value < lo || value > hi)
      fail(field, std::to_string(value) + " is out of range; use " + std::to_string(lo) + " to " + std::to_string(hi));
  }

  // Fields that the operation does not have must stay at their defaults, so that equal problems have equal text.
  void unused(const FieldName& field, bool is_default) const {
    if (!is_default) fail(field, "has no meaning for op " + std::string(name(c_.op)) + "; leave it out");
  }

  void shape() const {
    const Shape& s = c_.shape;
    constexpr std::int64_t most = std::int64_t{1} << 40;
    range("shape.batch", s.batch, 0, most);
    range("shape.q_heads", s.q_heads, 1, most);
    range("shape.kv_heads", s.kv_heads, 1, most);
    range("shape.tq", s.tq, 0, most);
    range("shape.tk", s.tk, 0, most);
    range("shape.d_qk", s.d_qk, 1, most);
    range("shape.d_v", s.d_v, 1, most);
    range("shape.parts", s.parts, 1, most);
    if (s.q_heads % s.kv_heads != 0)
      fail("shape.q_heads", std::to_string(s.q_heads) + " query heads cannot share " + std::to_string(s.kv_heads) +
                                " kv heads evenly; make q_heads a multiple of kv_heads");
    if (c_.op != Op::merge) unused("shape.parts", s.parts == 2);
    if (c_.op == Op::forward) return;
    unused("shape.batch", s.batch == 1);
    unused("shape.q_heads", s.q_heads == 1);
    unused("shape.kv_heads", s.kv_heads == 1);
    unused("shape.d_qk", s.d_qk == 1);
    if (c_.op == Op::merge) unused("shape.tk", s.tk == 1);
  }

  void options() const {
    if (c_.op == Op::forward) unused("state", c_.state == StateKind::mla);
    if (c_.op == Op::step && c_.state == StateKind::olse)
      fail("state", "a step has no normalised state; use ml or mla");
    if (c_.op != Op::forward) {
      unused("scale", !c_.scale);
      unused("out", c_.out == OutDType::storage);
      unused("reserved", !c_.reserved.any());
    }
    layout("layout.q", c_.q_layout);
    layout("layout.k", c_.k_layout);
    layout("layout.v", c_.v_layout);
    layout("layout.o", c_.o_layout);
    constexpr std::int64_t block = std::int64_t{1} << 40;
    range("tiling.block_q", c_.tiling.block_q, 0, block);
    range("tiling.block_k", c_.tiling.block_k, 0, block);
    range("tiling.splits", c_.tiling.splits, 0, block);
    range("tiling.threads", c_.tiling.threads, 1, 1024);
    range("reserved.window_left", c_.reserved.window_left, -1, INT64_MAX);
    range("reserved.window_right", c_.reserved.window_right, -1, INT64_MAX);
    if (!(c_.expected.tolerance >= 0)) fail("expected.tolerance", "must be 0 or more");
  }

  void layout(const char* field, const Layout& l) const {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    // As far as 32-bit offsets reach and beyond: two rows 2^31 elements apart.
    range({field, ".row_padding"}, l.row_padding, 0, std::int64_t{1} << 31);
    range({field, ".head_padding"}, l.head_padding, 0, most);
    range({field, ".column_step"}, l.column_step, 1, 1024);
  }

  void memory() const {
    // The widest formats that a kernel may ask for where the case leaves them open.
    const Formats widest{c_.dtype == DType::any ? DType::fp64 : c_.dtype, DType::fp64};
    const double bytes = problem_bytes(c_, widest);
    if (bytes <= 0x1p26) return;  // fits anywhere; do not ask the machine each time
    const double limit = memory_limit();
    if (bytes <= limit) return;
    const auto gib = [](double x) { return std::to_string(std::llround(x / 1024 / 1024)) + " MiB"; };
    if (bytes > 1e18) fail("shape", "the number of elements overflows; make the sizes smaller");
    fail("shape", "the problem would take " + gib(bytes) + ", more than the limit of " + gib(limit) +
                      "; make the sizes, the padding or tiling.splits smaller, or set ATTEST_CASE_GIB");
  }

  void mask() const {
    const Mask& m = c_.mask;
    if (c_.op == Op::merge) {
      unused("mask", m == Mask{});
      return;
    }
    if (!m.kv_len.empty() && static_cast<std::int64_t>(m.kv_len.size()) != c_.shape.batch)
      fail("mask.kv_len", std::to_string(m.kv_len.size()) + " lengths for a batch of " +
                              std::to_string(c_.shape.batch) + "; give one for each batch entry");
    for (std::size_t b = 0; b < m.kv_len.size(); ++b)
      range({"mask.kv_len[", std::to_string(b), "]"}, m.kv_len[b], 0, c_.shape.tk);
    mask_tensor("mask.visible", m.visible);
    mask_tensor("mask.additive", m.additive);
  }

  void mask_tensor(const char* field, const MaskTensor& m) const {
    if (m == MaskTensor{}) return;
    const std::int64_t full[4] = {c_.shape.batch, c_.shape.q_heads, c_.shape.tq, c_.shape.tk};
    if (!m.mask_shape.empty() && m.mask_shape.size() != 4)
      fail({field, ".shape"}, "must have four extents [batch, q_heads, tq, tk]; use 1 where an axis is broadcast");
    std::int64_t count = 1;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t extent = m.mask_shape.empty() ? full[i] : m.mask_shape[i];
      if (extent != full[i] && extent != 1)
        fail({field, ".shape[" + std::to_string(i) + "]"},
             std::to_string(extent) + " does not broadcast to " + std::to_string(full[i]) + "; use 1 or that");
      count *= extent;  // fits: memory() came first
    }
    if (!(m.density >= 0 && m.density <= 1)) fail({field, ".density"}, "must lie in 0 to 1");
    if (!m.pattern.empty()) {
      const auto& known = mask_patterns();
      if (std::find(known.begin(), known.end(), m.pattern) == known.end())
        fail({field, ".pattern"}, "unknown pattern '" + printable(m.pattern) + "'; known: " + list(known));
      if (!m.literal.empty()) fail({field, ".literal"}, "stands beside a pattern; keep one of the two");
    } else if (!m.literal.empty() && static_cast<std::int64_t>(m.literal.size()) != count) {
      fail({field, ".literal"}, std::to_string(m.literal.size()) + " entries where the mask has " +
                                    std::to_string(count) + "; give one for each");
    }
    for (std::uint8_t entry : m.literal)
      if (entry > 1) fail({field, ".literal"}, "an entry is neither 0 nor 1; a finite bias is not part of version 1");
  }

  static std::string list(const std::vector<std::string_view>& words) {
    std::string s;
    for (std::string_view w : words) s += (s.empty() ? "" : ", ") + std::string(w);
    return s;
  }

  void values() const {
    check_family(c_, origin_);
    std::vector<std::string_view> seen;
    for (const auto& [written, tensor] : c_.values.tensors) {
      const FieldName field("values.tensors.", written);
      const auto expected = named_shape(field, written, input_shape(c_, tensor_name(c_, written)), seen);
      if (tensor.npy.empty()) {
        count_matches(field, tensor.literal.size(), expected);
      } else {
        if (!tensor.literal.empty()) fail(field, "has literal numbers and a .npy file; keep one of the two");
        npy({"values.tensors.", written, ".npy"}, tensor.npy, expected);
      }
    }
    seen.clear();
    for (const auto& [written, numbers] : c_.expected.tensors) {
      const FieldName field("expected.tensors.", written);
      count_matches(field, numbers.size(),
                    named_shape(field, written, output_shape(c_, tensor_name(c_, written)), seen));
    }
  }

  Extents named_shape(const FieldName& field, std::string_view written, const Extents& shape,
                      std::vector<std::string_view>& seen) const {
    const std::string_view tensor = tensor_name(c_, written);
    if (shape.empty())
      fail(field, "op " + std::string(name(c_.op)) + " with state " + std::string(name(c_.state)) +
                      " has no such tensor here; check its name");
    if (std::find(seen.begin(), seen.end(), tensor) != seen.end())
      fail(field, "is given twice, as '" + std::string(tensor) + "' and under its other name; keep one");
    seen.push_back(tensor);
    return shape;
  }

  void count_matches(const FieldName& field, std::size_t count, const Extents& shape) const {
    if (static_cast<std::int64_t>(count) != element_count(shape))
      fail(field, std::to_string(count) + " numbers where the shape asks for " + std::to_string(element_count(shape)) +
                      "; give one for each element");
  }

  void npy(const FieldName& field, const std::string& path, const Extents& expected) const {
    const std::filesystem::path relative(path);
    const bool escapes = std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (relative.is_absolute() || escapes || path.find('\0') != std::string::npos)
      fail(field, "the path leaves the folder of the case; name a file in or below it");
    if (c_.directory.empty()) return;  // text without a place in the file system
    Npy header = read_npy_header(c_.directory + "/" + path, origin_ + ": " + field.text());
    // Axes of extent 1 do not change the order of elements: [12, 64, 64] is taken for [1, 12, 64, 64].
    std::vector<std::int64_t> shape(expected.begin(), expected.end());
    std::erase(header.shape, 1);
    std::erase(shape, 1);
    if (header.shape != shape) fail(field, "the shape of the array is not that of the tensor; check both");
  }

  const Case& c_;
  const std::string& origin_;
};

}  // namespace

void validate(const Case& c, const std::string& origin) { Check(c, origin).all(); }

}  // namespace attest
