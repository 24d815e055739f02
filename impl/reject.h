// Refusals, and the checks of tensors that all operations share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "impl/attention.h"

namespace attn {

const char* dtype_name(std::int32_t dtype);

// Collects the first reason against a problem.
class Refusal {
 public:
  Refusal(char* why, std::size_t size);

  // printf-style; the first call decides. Always false, for `return refuse(...)`.
#if defined(__GNUC__)
  __attribute__((format(printf, 2, 3)))
#endif
  bool
  refuse(const char* format, ...);

  std::int32_t status() const { return refused_ ? ATTN_REJECTED : ATTN_OK; }

  // Rank, shape, strides and format of a tensor that must be there (data may be NULL when it has no elements).
  bool check_tensor(const char* name, const attn_tensor& t, std::int32_t dtype,
                    std::initializer_list<std::int64_t> shape);
  // Additionally: no two elements share an address.
  bool check_output(const char* name, const attn_tensor& t, std::int32_t dtype,
                    std::initializer_list<std::int64_t> shape);
  bool check_absent(const char* name, const attn_tensor& t);
  // The outputs' addresses overlap neither each other's nor an input's.
  bool check_apart(const char* out_name, const attn_tensor& out, const char* other_name, const attn_tensor& other);
  // struct_size, op, reserved fields.
  bool check_header(const attn_problem& p, std::int32_t op);
  bool check_tiling(const attn_tiling& t);

 private:
  char* why_;
  std::size_t size_;
  bool refused_ = false;
};

}  // namespace attn
