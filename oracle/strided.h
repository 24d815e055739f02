// A tensor of a problem: buffer, format, logical shape, strides, and what is known to stand in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/attention.h"
#include "oracle/buffer.h"
#include "oracle/case.h"

namespace attest {

// Strides and size of a tensor with axes [batch, head, row, column], in elements.
struct Strides {
  std::int64_t stride[4];
  std::int64_t elements;  // of the payload, padding included
};
Strides lay_out(const std::int64_t (&shape)[4], const Layout& layout);

class Strided {
 public:
  // rank axes of the interface are the last ones of `shape`; the leading others have extent 1 (or are `parts`).
  Strided(std::string name, DType format, const std::int64_t (&shape)[4], int rank, const Layout& layout,
          std::uint8_t padding);

  const std::string& name() const { return name_; }
  DType format() const { return format_; }
  std::int64_t count() const { return shape_[0] * shape_[1] * shape_[2] * shape_[3]; }

  // Element by logical index, row-major.
  std::byte* element(std::int64_t logical);
  const std::byte* element(std::int64_t logical) const;
  std::uint64_t bits(std::int64_t logical) const;
  void set_bits(std::int64_t logical, std::uint64_t bits);

  // The view of the interface; `part` offsets along axis 0 and is dropped from the view.
  attn_tensor view(std::int64_t part = 0);

  Buffer& buffer() { return buffer_; }

  // On guard pages, writes end the process while it is read-only.
  void protect(bool read_only) { buffer_.protect(read_only); }

  // "" or what has changed: guard zones, or padding that no longer holds the padding byte.
  std::string damage() const;
  // Indices of a logical element, for messages: "name[1,0,3,2]".
  std::string place(std::int64_t logical) const;

 private:
  std::int64_t offset(std::int64_t logical) const;
  std::string name_;
  DType format_;
  std::int64_t width_;
  std::int64_t shape_[4];
  int rank_;
  Strides strides_;
  std::uint8_t padding_;
  Buffer buffer_;
};

}  // namespace attest
