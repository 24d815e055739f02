// Extents of a tensor of four axes at most, without a place on the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>

namespace attest {

class Extents {
 public:
  static constexpr std::size_t most = 4;

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> extents) : size_(extents.size()) {
    if (size_ > most) throw std::length_error("a tensor has four axes at most");
    std::copy(extents.begin(), extents.end(), at_);
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const std::int64_t* data() const { return at_; }
  const std::int64_t* begin() const { return at_; }
  const std::int64_t* end() const { return at_ + size_; }
  std::int64_t operator[](std::size_t axis) const { return at_[axis]; }
  std::int64_t back() const { return at_[size_ - 1]; }

 private:
  std::int64_t at_[most] = {};
  std::size_t size_ = 0;
};

}  // namespace attest
