#include "impl/reject.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace attn {

const char* dtype_name(std::int32_t dtype) {
  switch (dtype) {
    case ATTN_FP64:
      return "fp64";
    case ATTN_FP32:
      return "fp32";
    case ATTN_FP16:
      return "fp16";
    case ATTN_BF16:
      return "bf16";
    case ATTN_U8:
      return "u8";
    case ATTN_E4M3:
      return "e4m3";
    case ATTN_E5M2:
      return "e5m2";
    case ATTN_DTYPE_NONE:
      return "none";
    default:
      return "unknown";
  }
}

namespace {

std::int64_t element_bytes(std::int32_t dtype) {
  switch (dtype) {
    case ATTN_FP64:
      return 8;
    case ATTN_FP32:
      return 4;
    case ATTN_FP16:
    case ATTN_BF16:
      return 2;
    default:
      return 1;
  }
}

// Bytes from the first to one past the last element; 0 when there is none; -1 when they exceed 2^62.
std::int64_t extent_bytes(const attn_tensor& t) {
  std::int64_t last = 0;
  for (std::int32_t a = 0; a < t.rank; ++a) {
    if (t.shape[a] == 0) return 0;
    std::int64_t along = 0;
    if (__builtin_mul_overflow(t.shape[a] - 1, t.stride[a], &along) || __builtin_add_overflow(last, along, &last))
      return -1;
  }
  std::int64_t bytes = 0;
  if (last == INT64_MAX || __builtin_mul_overflow(last + 1, element_bytes(t.dtype), &bytes) ||
      bytes > (INT64_C(1) << 62))
    return -1;
  return bytes;
}

}  // namespace

Refusal::Refusal(char* why, std::size_t size) : why_(why), size_(size) {
  if (why_ && size_ > 0) why_[0] = '\0';
}

bool Refusal::refuse(const char* format, ...) {
  if (!refused_ && why_ && size_ > 0) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(why_, size_, format, arguments);
    va_end(arguments);
  }
  refused_ = true;
  return false;
}

bool Refusal::check_tensor(const char* name, const attn_tensor& t, std::int32_t dtype,
                           std::initializer_list<std::int64_t> shape) {
  const auto rank = static_cast<std::int32_t>(shape.size());
  if (t.dtype != dtype)
    return refuse("%s is %s; this kernel takes %s there: convert it or choose the kernel of its format", name,
                  dtype_name(t.dtype), dtype_name(dtype));
  if (t.rank != rank)
    return refuse("%s has rank %d, expected %d", name, static_cast<int>(t.rank), static_cast<int>(rank));
  bool elements = true;
  std::int32_t axis = 0;
  for (const std::int64_t extent : shape) {
    if (t.shape[axis] != extent)
      return refuse("%s has extent %" PRId64 " along axis %d, expected %" PRId64
                    " (broadcast by stride 0, not by extent 1)",
                    name, t.shape[axis], static_cast<int>(axis), extent);
    if (extent < 0)
      return refuse("%s has negative extent %" PRId64 " along axis %d", name, extent, static_cast<int>(axis));
    if (t.stride[axis] < 0)
      return refuse("%s has negative stride %" PRId64 " along axis %d; strides must be at least 0", name,
                    t.stride[axis], static_cast<int>(axis));
    elements = elements && extent > 0;
    ++axis;
  }
  if (elements && !t.data) return refuse("%s has elements but its data is NULL", name);
  if (extent_bytes(t) < 0) return refuse("%s spans more than 2^62 bytes: check its shape and strides", name);
  return true;
}

bool Refusal::check_output(const char* name, const attn_tensor& t, std::int32_t dtype,
                           std::initializer_list<std::int64_t> shape) {
  if (!check_tensor(name, t, dtype, shape)) return false;
  if (extent_bytes(t) == 0) return true;
  for (std::int32_t a = 0; a < t.rank; ++a)
    if (t.shape[a] > 1 && t.stride[a] == 0)
      return refuse("%s is written and has stride 0 along axis %d of extent %" PRId64 ": its elements would overlap",
                    name, static_cast<int>(a), t.shape[a]);
  return true;
}

bool Refusal::check_absent(const char* name, const attn_tensor& t) {
  if (t.data || t.dtype != ATTN_DTYPE_NONE || t.rank != 0)
    return refuse("%s is reserved and not supported: leave the tensor all zero", name);
  return true;
}

bool Refusal::check_apart(const char* out_name, const attn_tensor& out, const char* other_name,
                          const attn_tensor& other) {
  if (!out.data || !other.data) return true;
  const std::int64_t out_bytes = extent_bytes(out), other_bytes = extent_bytes(other);
  if (out_bytes == 0 || other_bytes == 0) return true;
  const auto a = reinterpret_cast<std::uintptr_t>(out.data), b = reinterpret_cast<std::uintptr_t>(other.data);
  if (a < b + static_cast<std::uintptr_t>(other_bytes) && b < a + static_cast<std::uintptr_t>(out_bytes))
    return refuse("%s overlaps %s in memory: outputs need their own storage", out_name, other_name);
  return true;
}

bool Refusal::check_header(const attn_problem& p, std::int32_t op) {
  if (p.struct_size < sizeof(attn_problem))
    return refuse("struct_size is %u, this kernel was built for %zu: set it to sizeof(attn_problem) of the same header",
                  static_cast<unsigned>(p.struct_size), sizeof(attn_problem));
  if (p.op != op) return refuse("op is %d, this kernel computes op %d", static_cast<int>(p.op), static_cast<int>(op));
  if (p.reserved0 != 0 || p.tiling.reserved0 != 0 || p.mask.reserved0 != 0)
    return refuse("a reserved field is not 0: zero the problem before filling it in");
  for (const std::uint64_t word : p.reserved)
    if (word != 0) return refuse("a reserved field is not 0: zero the problem before filling it in");
  return true;
}

bool Refusal::check_tiling(const attn_tiling& t) {
  if (t.block_q < 0 || t.block_k < 0 || t.splits < 0 || t.threads < 0)
    return refuse("tiling has a negative entry (block_q %" PRId64 ", block_k %" PRId64 ", splits %" PRId64
                  ", threads %d); 0 leaves the choice to the kernel",
                  t.block_q, t.block_k, t.splits, static_cast<int>(t.threads));
  return true;
}

}  // namespace attn
