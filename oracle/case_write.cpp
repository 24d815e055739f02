// Case -> canonical text: fields in a fixed order, defaults left out, one field a line, numbers with all their bits.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "oracle/case.h"
#include "oracle/case_error.h"
#include "oracle/number.h"
#include "oracle/philox.h"

namespace attest {
namespace {

std::string json_string(std::string_view text) {
  // Text that is not UTF-8 cannot stand in a file; replacing is only reached from code, the parser refuses it.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// An array, broken into lines of at most 110 columns when it does not fit on one.
std::string array(const std::vector<std::string>& items, const std::string& indent) {
  std::size_t length = 0;
  for (const std::string& item : items) length += item.size() + 2;
  if (length <= 90) {
    std::string s = "[";
    for (const std::string& item : items) s += (s.size() > 1 ? ", " : "") + item;
    return s + "]";
  }
  std::string s = "[", line;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (!line.empty() && indent.size() + line.size() + item.size() + 3 > 110) {
      s += "\n" + indent + "  " + line;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + item;
  }
  return s + "\n" + indent + "  " + line + "\n" + indent + "]";
}

template <class T, class Text>
std::string array_of(const std::vector<T>& xs, const std::string& indent, Text text) {
  std::vector<std::string> items;
  for (const T& x : xs) items.push_back(text(x));
  return array(items, indent);
}
std::string number(double x) { return '"' + number_text(x) + '"'; }
std::string numbers(const std::vector<double>& xs, const std::string& indent) { return array_of(xs, indent, number); }
std::string integers(const std::vector<std::int64_t>& xs, const std::string& indent) {
  return array_of(xs, indent, [](std::int64_t x) { return std::to_string(x); });
}

// Members in the order of calls. Nothing is written for a member that is at its default.
class Object {
 public:
  void add(std::string_view key, const std::string& value, bool present = true) {
    if (present) members_.push_back(json_string(key) + ": " + value);
  }
  void add(std::string_view key, std::int64_t value, std::int64_t absent) {
    add(key, std::to_string(value), value != absent);
  }
  bool empty() const { return members_.empty(); }
  std::string line() const {
    std::string s = "{";
    for (const std::string& m : members_) s += (s.size() > 1 ? ", " : "") + m;
    return s + "}";
  }
  std::string lines(const std::string& indent) const {
    std::string s = "{";
    for (const std::string& m : members_) s += (s.size() > 1 ? ",\n" : "\n") + indent + "  " + m;
    return s + "\n" + indent + "}";
  }
  // One line where it fits.
  std::string text(const std::string& indent) const {
    const std::string s = line();
    return s.size() <= 100 && s.find('\n') == std::string::npos ? s : lines(indent);
  }

 private:
  std::vector<std::string> members_;
};

std::string shape_text(const Case& c) {
  const Shape& s = c.shape;
  const bool forward = c.op == Op::forward;
  constexpr std::int64_t never = -1;  // sizes that the operation has are always written
  Object o;
  o.add("batch", s.batch, forward ? never : 1);
  o.add("q_heads", s.q_heads, forward ? never : 1);
  o.add("kv_heads", s.kv_heads, forward ? never : 1);
  o.add("tq", s.tq, never);
  o.add("tk", s.tk, c.op == Op::merge ? 1 : never);
  o.add("d_qk", s.d_qk, forward ? never : 1);
  o.add("d_v", s.d_v, never);
  o.add("parts", s.parts, c.op == Op::merge ? never : 2);
  return o.line();
}

std::string mask_tensor_text(const MaskTensor& m, const Shape& shape) {
  Object o;
  o.add("pattern", json_string(m.pattern), !m.pattern.empty());
  o.add("seed", json_string(std::to_string(m.seed)), m.seed != 0);
  o.add("density", number(m.density), !same_bits(m.density, 0.5));
  o.add("shape", integers(m.mask_shape, "      "), !m.mask_shape.empty());
  if (!m.literal.empty()) {
    const std::int64_t extent = m.mask_shape.size() == 4 ? m.mask_shape[3] : shape.tk;
    const std::size_t width = extent > 0 ? static_cast<std::size_t>(extent) : m.literal.size();
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < m.literal.size(); i += width) {
      std::string row;
      for (std::size_t j = i; j < std::min(i + width, m.literal.size()); ++j) row += m.literal[j] ? '1' : '0';
      rows.push_back(json_string(row));
    }
    o.add("rows", array(rows, "      "));
  }
  return o.text("    ");
}

std::string mask_text(const Case& c) {
  const Mask& m = c.mask;
  Object o;
  o.add("causal", json_string(name(m.causal)), m.causal != Causal::none);
  o.add("kv_len", integers(m.kv_len, "    "), !m.kv_len.empty());
  o.add("visible", mask_tensor_text(m.visible, c.shape), !(m.visible == MaskTensor{}));
  o.add("additive", mask_tensor_text(m.additive, c.shape), !(m.additive == MaskTensor{}));
  return o.text("  ");
}

std::string values_text(const Values& v) {
  Object o, parameters, tensors;
  o.add("family", json_string(v.family), v.family != "gaussian");
  o.add("seed", json_string(std::to_string(v.seed)), v.seed != 0);
  for (const auto& [key, x] : v.parameters) parameters.add(key, number(x));
  o.add("parameters", parameters.line(), !parameters.empty());
  for (const auto& [key, t] : v.tensors)
    tensors.add(key, t.npy.empty() ? numbers(t.literal, "      ") : "{\"npy\": " + json_string(t.npy) + "}");
  o.add("tensors", tensors.text("    "), !tensors.empty());
  return o.text("  ");
}

std::string layout_text(const Case& c) {
  Object o;
  const auto add = [&](std::string_view key, const Layout& l) {
    Object one;
    one.add("heads_inside", "true", l.heads_inside);
    one.add("row_padding", l.row_padding, 0);
    one.add("head_padding", l.head_padding, 0);
    one.add("column_step", l.column_step, 1);
    o.add(key, one.line(), !one.empty());
  };
  add("q", c.q_layout);
  add("k", c.k_layout);
  add("v", c.v_layout);
  add("o", c.o_layout);
  return o.text("  ");
}

std::string reserved_text(const Reserved& r) {
  Object o;
  o.add("softcap", number(r.softcap), !same_bits(r.softcap, 0));
  o.add("window_left", r.window_left, -1);
  o.add("window_right", r.window_right, -1);
  o.add("bias", "true", r.bias);
  o.add("sinks", "true", r.sinks);
  return o.text("  ");
}

std::string expected_text(const Expected& e) {
  Object o, tensors;
  o.add("tolerance", number(e.tolerance), !same_bits(e.tolerance, 0));
  for (const auto& [key, xs] : e.tensors) tensors.add(key, numbers(xs, "      "));
  o.add("tensors", tensors.text("    "), !tensors.empty());
  return o.text("  ");
}

std::string tiling_text(const Tiling& t) {
  Object o;
  o.add("block_q", t.block_q, 0);
  o.add("block_k", t.block_k, 0);
  o.add("splits", t.splits, 0);
  o.add("threads", t.threads, 1);
  return o.line();
}

[[noreturn]] void write_error(const std::string& path, const std::string& what) {
  case_error(path, "file", "cannot be written (" + what + ": " + std::strerror(errno) + "); the old file is untouched");
}

}  // namespace

std::string to_text(const Case& c) {
  Object o;
  o.add("schema", "\"attest-case/1\"");
  o.add("about", json_string(c.about), !c.about.empty());
  o.add("op", json_string(name(c.op)));
  o.add("state", json_string(name(c.state)), c.state != StateKind::mla);
  o.add("dtype", json_string(name(c.dtype)), c.dtype != DType::any);
  o.add("out", json_string(name(c.out)), c.out != OutDType::storage);
  o.add("shape", shape_text(c));
  if (c.scale) o.add("scale", number(*c.scale));
  const auto section = [&](std::string_view key, const std::string& text) { o.add(key, text, text != "{}"); };
  section("mask", mask_text(c));
  section("tiling", tiling_text(c.tiling));
  section("values", values_text(c.values));
  section("layout", layout_text(c));
  section("reserved", reserved_text(c.reserved));
  section("expected", expected_text(c.expected));
  const auto words = [](const std::vector<std::string>& xs) {
    return array_of(xs, "  ", [](const std::string& x) { return json_string(x); });
  };
  o.add("kernels", words(c.kernels), !c.kernels.empty());
  o.add("laws", words(c.laws), !c.laws.empty());
  return o.lines("") + "\n";
}

void save_case(const Case& c, const std::string& path) {
  namespace fs = std::filesystem;
  static std::atomic<unsigned> counter{0};
  const std::string text = to_text(c);
  const auto write_to = [&](int file) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(file, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  };
  const auto give_up = [&](int file, const std::string& temporary, const char* what) {
    const int saved = errno;
    if (file >= 0) close(file);
    if (!temporary.empty()) unlink(temporary.c_str());
    errno = saved;
    write_error(path, what);
  };
  // A device or a pipe is written to as it is: a file renamed over it would take its place.
  std::error_code ignored;
  if (const fs::file_status there = fs::status(path, ignored); fs::exists(there) && !fs::is_regular_file(there)) {
    const int file = open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (file < 0) give_up(file, "", "open");
    if (!write_to(file)) give_up(file, "", "write");
    if (close(file) != 0) give_up(-1, "", "close");
    return;
  }
  // A symbolic link stays, its target is replaced.
  fs::path target = path;
  for (int hops = 0; fs::is_symlink(fs::symlink_status(target, ignored)); ++hops) {
    errno = ELOOP;
    if (hops == 40) give_up(-1, "", "open");
    target = target.parent_path() / fs::read_symlink(target, ignored);
  }
  const std::string temporary =
      target.string() + "." + std::to_string(getpid()) + "-" + std::to_string(counter++) + ".part";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) give_up(file, "", "open");
  if (!write_to(file)) give_up(file, temporary, "write");
  if (fsync(file) != 0) give_up(file, temporary, "fsync");
  if (rename(temporary.c_str(), target.c_str()) != 0) give_up(file, temporary, "rename");
  close(file);
  // The new name itself must survive a crash, too.
  const std::string folder = target.parent_path().string();
  const int directory = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

std::string case_hash(const Case& c) {
  Case unnamed = c;
  unnamed.about.clear();
  std::uint64_t hash = fnv_offset;
  for (char ch : to_text(unnamed)) hash = fnv1a(hash, static_cast<std::uint8_t>(ch));
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (int i = 15; i >= 0; --i) s += digits[hash >> (4 * i) & 15];
  return s;
}

}  // namespace attest
