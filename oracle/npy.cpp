#include "oracle/npy.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "oracle/case_error.h"
#include "oracle/format.h"

namespace attest {
namespace {

// The header is a Python dictionary literal; this reads the three entries that the format allows, in any order.
class Header {
 public:
  Header(const std::string& text, const std::string& path, const std::string& field)
      : text_(text), path_(path), field_(field) {}

  Npy read() {
    Npy npy;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        npy.type = quoted();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        const std::string value = word();
        if (value == "True") fail("the array is in Fortran order; save it in C order (numpy.ascontiguousarray)");
        if (value != "False") fail("fortran_order is neither True nor False; write the file again");
        order = true;
      } else if (key == "shape" && !shape) {
        npy.shape = tuple();
        shape = true;
      } else {
        fail("unexpected header entry '" + printable(key) + "'; write the file again with numpy.save");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) fail("text after the header's dictionary; write the file again");
    if (!descr || !order || !shape) fail("the header lacks descr, fortran_order or shape; write the file again");
    return npy;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { case_error(path_, field_, reason); }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("malformed header, '") + c + "' expected; write the file again");
  }
  std::string quoted() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("malformed header, or a structured dtype; save a plain float array");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("malformed header, unterminated string; write the file again");
    std::string s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  std::string word() {
    skip();
    std::string s;
    while (at_ < text_.size() && (text_[at_] >= 'A' && text_[at_] <= 'z')) s += text_[at_++];
    return s;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      skip();
      std::int64_t extent = 0;
      std::size_t digits = 0;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, ++digits)
        if (digits < 18) extent = extent * 10 + (text_[at_] - '0');  // more are refused below
      if (digits == 0 || digits > 18) fail("malformed shape in the header; write the file again");
      if (shape.size() == 8) fail("more than 8 axes; reshape the array to the tensor's shape");
      shape.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  const std::string& text_;
  const std::string& path_;
  const std::string& field_;
  std::size_t at_ = 0;
};

std::int64_t bytes_of_type(const std::string& type) {
  if (type == "<f8") return 8;
  if (type == "<f4") return 4;
  if (type == "<f2") return 2;
  return type == "|u1" ? 1 : 0;
}

double element(const std::string& type, const char* bytes) {
  if (type == "<f8") return decode(DType::fp64, load_bits(DType::fp64, bytes));
  if (type == "<f4") return decode(DType::fp32, load_bits(DType::fp32, bytes));
  if (type == "<f2") return decode(DType::fp16, load_bits(DType::fp16, bytes));
  return static_cast<unsigned char>(*bytes);
}

Npy read(const std::string& path, const std::string& field, bool with_values) {
  const auto fail = [&](const std::string& reason) { case_error(path, field, reason); };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail("no such .npy file; paths are relative to the case file");
  if (!std::filesystem::is_regular_file(status)) fail("not a regular file; name a .npy file");
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) fail("cannot be read; check its permissions");

  unsigned char start[12] = {};
  in.read(reinterpret_cast<char*>(start), 8);
  if (in.gcount() < 8) fail("truncated before the header; write the file again");
  if (std::string_view(reinterpret_cast<char*>(start), 6) != "\x93NUMPY")
    fail("not a .npy file: its first bytes are wrong; write it with numpy.save");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    fail("version " + std::to_string(version) + "." + std::to_string(start[7]) +
         " is unknown; versions 1.0 to 3.0 are read");
  const int width = version == 1 ? 2 : 4;
  in.read(reinterpret_cast<char*>(start + 8), width);
  if (in.gcount() < width) fail("truncated in the header; write the file again");
  std::uint64_t length = 0;
  for (int i = width - 1; i >= 0; --i) length = length << 8 | start[8 + i];
  if (length > 65536) fail("a header of " + std::to_string(length) + " bytes is not believable; write the file again");
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  if (static_cast<std::uint64_t>(in.gcount()) < length) fail("truncated in the header; write the file again");

  Npy npy = Header(text, path, field).read();
  const std::int64_t bytes = bytes_of_type(npy.type);
  if (bytes == 0) fail("dtype '" + printable(npy.type) + "' is not read; save as <f8, <f4, <f2 or |u1");
  const std::int64_t count = element_count(npy.shape);
  const std::uint64_t begin = 8u + static_cast<unsigned>(width) + length;
  if (count < 0 || static_cast<std::uint64_t>(count) > UINT64_MAX / 16) fail("its shape overflows; check the file");
  const std::uint64_t payload = static_cast<std::uint64_t>(count * bytes);
  if (size < begin + payload)
    fail("truncated: " + std::to_string(size - begin) + " bytes of data where the header promises " +
         std::to_string(payload) + "; write the file again");
  if (size > begin + payload) fail("bytes after the data; write the file again");
  if (!with_values) return npy;

  std::vector<char> data(payload);
  in.read(data.data(), static_cast<std::streamsize>(payload));
  if (static_cast<std::uint64_t>(in.gcount()) < payload) fail("cannot be read to its end; check the disk");
  npy.values.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    npy.values[static_cast<std::size_t>(i)] = element(npy.type, data.data() + i * bytes);
  return npy;
}

}  // namespace

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return -1;
  return count;
}

Npy read_npy(const std::string& path, const std::string& field) { return read(path, field, true); }
Npy read_npy_header(const std::string& path, const std::string& field) { return read(path, field, false); }

void write_npy(const std::string& path, const std::string& type, const std::vector<std::int64_t>& shape,
               const std::vector<double>& values) {
  const DType format = type == "<f8" ? DType::fp64 : DType::fp32;
  if ((type != "<f8" && type != "<f4") || element_count(shape) != static_cast<std::int64_t>(values.size()))
    throw std::runtime_error(path + ": only <f8 and <f4 arrays of as many values as their shape says are written");
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (std::int64_t extent : shape) header += std::to_string(extent) + ",";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ') += '\n';  // the data begins at a multiple of 64
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const auto width = static_cast<std::size_t>(bytes_of(format));
  for (double value : values) {
    char element[8];
    store_bits(format, element, encode(format, value));
    bytes.append(element, width);
  }
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace attest
