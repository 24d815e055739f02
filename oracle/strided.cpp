#include "oracle/strided.h"

#include <algorithm>
#include <cstring>

#include "oracle/format.h"

namespace attest {

Strides lay_out(const std::int64_t (&shape)[4], const Layout& layout) {
  const std::int64_t line = shape[3] * layout.column_step + layout.row_padding;
  if (layout.heads_inside) {
    const std::int64_t row = shape[1] * line, batch = (shape[2] + layout.head_padding) * row;
    return {{batch, line, row, layout.column_step}, shape[0] * batch};
  }
  const std::int64_t head = (shape[2] + layout.head_padding) * line, batch = shape[1] * head;
  return {{batch, head, line, layout.column_step}, shape[0] * batch};
}

Strided::Strided(std::string name, DType format, const std::int64_t (&shape)[4], int rank, const Layout& layout,
                 std::uint8_t padding)
    : name_(std::move(name)),
      format_(format),
      width_(bytes_of(format)),
      rank_(rank),
      strides_(lay_out(shape, layout)),
      padding_(padding),
      buffer_(strides_.elements * width_, padding, {.name = name_, .alignment = width_}) {
  std::copy(shape, shape + 4, shape_);
}

std::int64_t Strided::offset(std::int64_t logical) const {
  std::int64_t at = 0;
  for (int axis = 3; axis >= 0; --axis) {
    at += logical % shape_[axis] * strides_.stride[axis];
    logical /= shape_[axis];
  }
  return at * width_;
}

std::byte* Strided::element(std::int64_t logical) { return buffer_.data() + offset(logical); }
const std::byte* Strided::element(std::int64_t logical) const { return buffer_.data() + offset(logical); }
std::uint64_t Strided::bits(std::int64_t logical) const { return load_bits(format_, element(logical)); }
void Strided::set_bits(std::int64_t logical, std::uint64_t bits) { store_bits(format_, element(logical), bits); }

attn_tensor Strided::view(std::int64_t part) {
  attn_tensor t{};
  t.data = buffer_.data() + part * strides_.stride[0] * width_;
  t.dtype = abi_dtype(format_);
  t.rank = rank_;
  for (int axis = 0; axis < rank_; ++axis) {
    t.shape[axis] = shape_[4 - rank_ + axis];
    t.stride[axis] = strides_.stride[4 - rank_ + axis];
  }
  return t;
}

std::string Strided::place(std::int64_t logical) const {
  std::string s;
  // Axes that the interface does not have are shown only where they count parts.
  for (int axis = 3; axis >= 0; --axis) {
    if (axis >= 4 - rank_ || shape_[axis] > 1) s = std::to_string(logical % shape_[axis]) + (s.empty() ? "" : ",") + s;
    logical /= shape_[axis];
  }
  return name_ + "[" + s + "]";
}

std::string Strided::damage() const {
  if (const auto at = buffer_.broken_guard()) {
    const std::int64_t beyond = *at < 0 ? -*at : *at - buffer_.size() + 1;
    return name_ + ": written outside of the tensor, " + std::to_string(beyond) + (beyond == 1 ? " byte" : " bytes") +
           (*at < 0 ? " before its begin" : " past its end");
  }
  if (count() == strides_.elements) return "";
  // What is left after putting the padding byte over every element must be padding.
  std::vector<std::byte> rest(buffer_.data(), buffer_.data() + buffer_.size());
  for (std::int64_t i = 0; i < count(); ++i)
    std::memset(rest.data() + offset(i), padding_, static_cast<std::size_t>(width_));
  const auto changed = std::find_if(rest.begin(), rest.end(), [&](std::byte b) { return b != std::byte{padding_}; });
  if (changed == rest.end()) return "";
  return name_ + ": padding overwritten at element offset " + std::to_string((changed - rest.begin()) / width_) +
         " of its memory; write only the elements of the shape";
}

}  // namespace attest
