#include "oracle/format.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "impl/attention.h"

namespace attest {
namespace {

struct Fields {
  int mantissa;  // stored bits
  int exponent;  // bits
  int bias() const { return (1 << (exponent - 1)) - 1; }
  int min_exponent() const { return 1 - bias(); }
  std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent) - 1) << mantissa; }
};

constexpr Fields fp64{52, 11};

Fields fields(DType format) {
  switch (format) {
    case DType::fp64:
      return fp64;
    case DType::fp32:
      return {23, 8};
    case DType::fp16:
      return {10, 5};
    case DType::bf16:
      return {7, 8};
    case DType::any:
      break;
  }
  throw std::logic_error("format 'any' has no bits; the kernel's Contract must choose one first");
}

}  // namespace

std::int64_t bytes_of(DType format) {
  const Fields f = fields(format);
  return (1 + f.exponent + f.mantissa) / 8;
}

std::int32_t abi_dtype(DType format) {
  switch (format) {
    case DType::fp64:
      return ATTN_FP64;
    case DType::fp32:
      return ATTN_FP32;
    case DType::fp16:
      return ATTN_FP16;
    case DType::bf16:
      return ATTN_BF16;
    case DType::any:
      break;
  }
  return ATTN_DTYPE_NONE;
}

std::uint64_t encode(DType format, double value) {
  const Fields f = fields(format);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (f.mantissa == fp64.mantissa) return bits;
  const std::uint64_t sign = (bits >> 63) << (f.mantissa + f.exponent);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int drop = fp64.mantissa - f.mantissa;
  if (biased == 0x7ff) {
    if (fraction == 0) return sign | f.infinity();
    std::uint64_t payload = fraction >> drop;
    if (payload == 0) payload = std::uint64_t{1} << (f.mantissa - 1);  // it must not turn into infinity
    return sign | f.infinity() | payload;
  }
  if (biased == 0) return sign;  // below 2^-1022: far under half the smallest subnormal of the narrower formats
  const int exponent = biased - 1023;
  const bool subnormal = exponent < f.min_exponent();
  const int shift = drop + (subnormal ? f.min_exponent() - exponent : 0);
  if (shift > 54) return sign;
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand - (kept << shift), half = std::uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  if (subnormal) return sign | kept;  // a carry makes the smallest normal number, whose bits follow on
  // The hidden bit of `kept` adds one to the exponent field; a carry adds another, up to infinity.
  const std::uint64_t rounded = (static_cast<std::uint64_t>(exponent + f.bias() - 1) << f.mantissa) + kept;
  return sign | (rounded < f.infinity() ? rounded : f.infinity());
}

double decode(DType format, std::uint64_t bits) {
  const Fields f = fields(format);
  if (f.mantissa == fp64.mantissa) return std::bit_cast<double>(bits);
  const std::uint64_t sign = (bits >> (f.mantissa + f.exponent) & 1) << 63;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << f.mantissa) - 1);
  const std::uint64_t biased = bits >> f.mantissa & ((std::uint64_t{1} << f.exponent) - 1);
  const int drop = fp64.mantissa - f.mantissa;
  if (biased == (std::uint64_t{1} << f.exponent) - 1)
    return std::bit_cast<double>(sign | std::uint64_t{0x7ff} << 52 | fraction << drop);
  if (biased == 0) {
    // fraction * 2^(min_exponent - mantissa): both factors and the product are exact
    const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + f.min_exponent() - f.mantissa) << 52);
    const double magnitude = static_cast<double>(fraction) * unit;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | sign);
  }
  const std::uint64_t exponent = biased - static_cast<std::uint64_t>(f.bias()) + 1023;
  return std::bit_cast<double>(sign | exponent << 52 | fraction << drop);
}

double largest(DType format) {
  const DType f = format == DType::any ? DType::fp16 : format;
  return decode(f, fields(f).infinity() - 1);
}

std::uint64_t load_bits(DType format, const void* element) {
  std::uint64_t bits = 0;  // little endian, like every machine that this runs on
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&bits, element, static_cast<std::size_t>(bytes_of(format)));
  return bits;
}

void store_bits(DType format, void* element, std::uint64_t bits) {
  std::memcpy(element, &bits, static_cast<std::size_t>(bytes_of(format)));
}

}  // namespace attest
