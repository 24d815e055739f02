// Storage formats: exact conversion between doubles and the bit patterns that kernels read and write.
// Integer arithmetic only, so that NaN payloads survive and no rounding mode or flush flag has a say.
#pragma once

#include <cstdint>

#include "oracle/case.h"

namespace attest {

// Bytes of one element. DType::any has no size: std::logic_error.
std::int64_t bytes_of(DType format);

// The number as the interface spells the format: ATTN_FP32 and so on.
std::int32_t abi_dtype(DType format);

// Rounds to nearest, ties to even (IEEE 754, 4.3.1); beyond the largest finite value: infinity. A NaN keeps its sign
// and the upper bits of its payload; a signalling NaN stays one unless its payload would become 0.
std::uint64_t encode(DType format, double value);

// Exact: every element of every format is a double.
double decode(DType format, std::uint64_t bits);

// The double nearest to value that the format holds.
inline double round_to(DType format, double value) { return decode(format, encode(format, value)); }

// The largest finite value. DType::any: that of fp16, which fits all the others.
double largest(DType format);

// Raw element access: the lowest bytes_of(format) bytes.
std::uint64_t load_bits(DType format, const void* element);
void store_bits(DType format, void* element, std::uint64_t bits);

}  // namespace attest
