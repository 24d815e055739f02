// What workers and their parent say to each other: plain bytes, read in the order in which they were written.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "properties/law.h"
#include "reports/tool/worker.h"

namespace attest {

class RecordWriter {
 public:
  RecordWriter& operator<<(std::uint64_t n) {
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof n);
    return *this;
  }
  // Bits, not digits: a NaN keeps its sign.
  RecordWriter& operator<<(double x) { return *this << std::bit_cast<std::uint64_t>(x); }
  RecordWriter& operator<<(std::string_view text) {
    *this << std::uint64_t{text.size()};
    bytes_.append(text);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Both ends are one program: a record that does not fit comes from memory that a kernel has overwritten, and raises
// std::runtime_error.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t n = 0;
    std::memcpy(&n, piece(sizeof n).data(), sizeof n);
    return n;
  }
  double real() { return std::bit_cast<double>(number()); }
  std::string text() { return std::string(piece(number())); }

 private:
  std::string_view piece(std::uint64_t size) {
    if (size > bytes_.size()) throw std::runtime_error("a worker's record is damaged");
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  std::string_view bytes_;
};

RecordWriter& operator<<(RecordWriter& out, const CheckResult& r);
CheckResult read_result(RecordReader& in);

// What a worker replied: the result, behind what `before` reads; a kernel that ended the worker has failed.
template <class Before>
CheckResult result_of(const Reply& reply, const Before& before) {
  CheckResult failed;
  failed.outcome = Outcome::fail;
  failed.finding.message = "the kernel " + reply.ending;
  if (!reply.answered) return failed;
  try {
    RecordReader in(reply.answer);
    before(in);
    return read_result(in);
  } catch (const std::runtime_error&) {
    failed.finding.message = "the kernel overwrote memory of its worker";
    return failed;
  }
}

}  // namespace attest
