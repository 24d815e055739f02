// Text -> Case. The field names here and in case_write.cpp are the file format; oracle/README.md describes it.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "oracle/case.h"
#include "oracle/case_fields.h"

namespace attest {
namespace {

template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;
const Words<Op> ops = {{"step", Op::step}, {"merge", Op::merge}, {"forward", Op::forward}};
const Words<StateKind> states = {{"ml", StateKind::ml}, {"mla", StateKind::mla}, {"olse", StateKind::olse}};
const Words<DType> dtypes = {
    {"any", DType::any}, {"fp64", DType::fp64}, {"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}};
const Words<OutDType> outs = {{"storage", OutDType::storage}, {"accumulator", OutDType::accumulator}};
const Words<Causal> causals = {
    {"none", Causal::none}, {"top-left", Causal::top_left}, {"bottom-right", Causal::bottom_right}};

// Sizes: any that an int64 holds pass here, validate() says what is too large.
constexpr std::int64_t largest_size = INT64_MAX;

void read_shape(const Field& object, Shape& s) {
  for_each_field(object, "batch, q_heads, kv_heads, tq, tk, d_qk, d_v, parts",
                 [&](const std::string& key, const Field& f) {
                   std::int64_t* const size = key == "batch"      ? &s.batch
                                              : key == "q_heads"  ? &s.q_heads
                                              : key == "kv_heads" ? &s.kv_heads
                                              : key == "tq"       ? &s.tq
                                              : key == "tk"       ? &s.tk
                                              : key == "d_qk"     ? &s.d_qk
                                              : key == "d_v"      ? &s.d_v
                                              : key == "parts"    ? &s.parts
                                                                  : nullptr;
                   if (size) *size = f.integer(0, largest_size);
                   return size != nullptr;
                 });
}

void read_layout(const Field& object, Layout& l) {
  for_each_field(object, "heads_inside, row_padding, head_padding, column_step",
                 [&](const std::string& key, const Field& f) {
                   if (key == "heads_inside") return l.heads_inside = f.boolean(), true;
                   if (key == "row_padding") return l.row_padding = f.integer(0, largest_size), true;
                   if (key == "head_padding") return l.head_padding = f.integer(0, largest_size), true;
                   if (key == "column_step") return l.column_step = f.integer(1, largest_size), true;
                   return false;
                 });
}

void read_layouts(const Field& object, Case& c) {
  for_each_field(object, "q, k, v, o", [&](const std::string& key, const Field& f) {
    Layout* const l = key == "q"   ? &c.q_layout
                      : key == "k" ? &c.k_layout
                      : key == "v" ? &c.v_layout
                      : key == "o" ? &c.o_layout
                                   : nullptr;
    if (l) read_layout(f, *l);
    return l != nullptr;
  });
}

// Literal masks are strings of 0 and 1, one for each row of the last axis (or any other cut).
std::vector<std::uint8_t> read_mask_rows(const Field& f) {
  std::vector<std::uint8_t> bits;
  for (std::size_t i = 0; i < f.array().size(); ++i) {
    const Field row = f.at(i);
    for (char ch : row.text()) {
      if (ch != '0' && ch != '1') row.fail("must hold only the digits 0 (masked) and 1 (visible)");
      bits.push_back(ch == '1');
    }
  }
  return bits;
}

void read_mask_tensor(const Field& object, MaskTensor& m) {
  for_each_field(object, "pattern, seed, density, shape, rows", [&](const std::string& key, const Field& f) {
    if (key == "pattern") return m.pattern = f.text(), true;
    if (key == "seed") return m.seed = f.seed(), true;
    if (key == "density") return m.density = f.number(), true;
    if (key == "shape") return m.mask_shape = f.integers(0, largest_size), true;
    if (key == "rows") return m.literal = read_mask_rows(f), true;
    return false;
  });
}

void read_mask(const Field& object, Mask& m) {
  for_each_field(object, "causal, kv_len, visible, additive", [&](const std::string& key, const Field& f) {
    if (key == "causal") return m.causal = f.one_of(causals), true;
    if (key == "kv_len") return m.kv_len = f.integers(0, largest_size), true;
    if (key == "visible") return read_mask_tensor(f, m.visible), true;
    if (key == "additive") return read_mask_tensor(f, m.additive), true;
    return false;
  });
}

void read_tiling(const Field& object, Tiling& t) {
  for_each_field(object, "block_q, block_k, splits, threads", [&](const std::string& key, const Field& f) {
    if (key == "block_q") return t.block_q = f.integer(0, largest_size), true;
    if (key == "block_k") return t.block_k = f.integer(0, largest_size), true;
    if (key == "splits") return t.splits = f.integer(0, largest_size), true;
    if (key == "threads") return t.threads = static_cast<std::int32_t>(f.integer(1, INT32_MAX)), true;
    return false;
  });
}

TensorValues read_tensor(const Field& f) {
  TensorValues t;
  if (f.json().is_array()) {
    t.literal = f.numbers();
  } else {
    for_each_field(f, "npy", [&](const std::string& key, const Field& g) {
      if (key != "npy") return false;
      t.npy = g.text();
      if (t.npy.empty()) g.fail("is empty; name a .npy file beside the case");
      return true;
    });
    if (t.npy.empty()) f.fail("is empty; give an array of numbers or {\"npy\": \"FILE\"}");
  }
  return t;
}

void read_values(const Field& object, Values& v) {
  for_each_field(object, "family, seed, parameters, tensors", [&](const std::string& key, const Field& f) {
    if (key == "family") return v.family = f.text(), true;
    if (key == "seed") return v.seed = f.seed(), true;
    if (key == "parameters") {
      for_each_field(f, "the parameters of the family", [&](const std::string& name, const Field& g) {
        v.parameters[name] = g.number();
        return true;
      });
      return true;
    }
    if (key == "tensors") {
      for_each_field(f, "tensor names", [&](const std::string& name, const Field& g) {
        v.tensors[name] = read_tensor(g);
        return true;
      });
      return true;
    }
    return false;
  });
}

void read_reserved(const Field& object, Reserved& r) {
  for_each_field(object, "softcap, window_left, window_right, bias, sinks",
                 [&](const std::string& key, const Field& f) {
                   if (key == "softcap") return r.softcap = f.number(), true;
                   if (key == "window_left") return r.window_left = f.integer(-1, INT64_MAX), true;
                   if (key == "window_right") return r.window_right = f.integer(-1, INT64_MAX), true;
                   if (key == "bias") return r.bias = f.boolean(), true;
                   if (key == "sinks") return r.sinks = f.boolean(), true;
                   return false;
                 });
}

void read_expected(const Field& object, Expected& e) {
  for_each_field(object, "tolerance, tensors", [&](const std::string& key, const Field& f) {
    if (key == "tolerance") return e.tolerance = f.number(), true;
    if (key != "tensors") return false;
    for_each_field(f, "tensor names", [&](const std::string& name, const Field& g) {
      e.tensors[name] = g.numbers();
      return true;
    });
    return true;
  });
}

Case read_case(const Field& root) {
  Case c;
  bool schema = false;
  constexpr std::string_view known =
      "schema, about, op, state, dtype, out, shape, scale, mask, tiling, values, layout, reserved, expected, kernels, "
      "laws";
  // The schema decides what the other fields mean: it is looked at first.
  if (root.json().is_object() && root.json().contains("schema")) {
    const Field f(root.json()["schema"], "schema", root.origin());
    if (f.text() != "attest-case/1")
      f.fail(std::string("'") + printable(f.text()) + "' is not known; this version reads attest-case/1");
    schema = true;
  }
  for_each_field(root, known, [&](const std::string& key, const Field& f) {
    if (key == "schema") return true;
    if (key == "about") return c.about = f.text(), true;
    if (key == "op") return c.op = f.one_of(ops), true;
    if (key == "state") return c.state = f.one_of(states), true;
    if (key == "dtype") return c.dtype = f.one_of(dtypes), true;
    if (key == "out") return c.out = f.one_of(outs), true;
    if (key == "shape") return read_shape(f, c.shape), true;
    if (key == "scale") return c.scale = f.number(), true;
    if (key == "mask") return read_mask(f, c.mask), true;
    if (key == "tiling") return read_tiling(f, c.tiling), true;
    if (key == "values") return read_values(f, c.values), true;
    if (key == "layout") return read_layouts(f, c), true;
    if (key == "reserved") return read_reserved(f, c.reserved), true;
    if (key == "expected") return read_expected(f, c.expected), true;
    if (key == "kernels") return c.kernels = f.texts(), true;
    if (key == "laws") return c.laws = f.texts(), true;
    return false;
  });
  if (!schema) case_error(root.origin(), "schema", "is missing; begin with \"schema\": \"attest-case/1\"");
  if (!root.json().contains("shape")) case_error(root.origin(), "shape", "is missing; a case must state its sizes");
  return c;
}

Case parse_in(const std::string& text, const std::string& origin, const std::string& directory) {
  const nlohmann::json json = parse_strict_json(text, origin);
  Case c = read_case(Field(json, "$", origin));
  c.directory = directory;
  validate(c, origin);
  return c;
}

}  // namespace

Case parse_case(const std::string& text, const std::string& origin) { return parse_in(text, origin, ""); }

Case load_case(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) case_error(path, "file", "does not exist; check the path");
  if (!std::filesystem::is_regular_file(status)) case_error(path, "file", "is not a regular file; name a .case file");
  constexpr std::uintmax_t most = 64u << 20;
  if (std::filesystem::file_size(path, error) > most || error)
    case_error(path, "file", "is larger than 64 MiB; keep large tensors in .npy files");
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) case_error(path, "file", "cannot be read; check its permissions");
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return parse_in(text, path, directory.empty() ? "." : directory);
}

}  // namespace attest
