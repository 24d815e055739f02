#include "impl/cuda/hopper/tensor_map.h"

#include <cinttypes>
#include <cstdint>

namespace attn::hopper {

namespace {

constexpr std::int64_t element_bytes = 2;
constexpr std::int64_t alignment = 16;                     // of the base and of strides, in bytes
constexpr std::int64_t largest_stride = INT64_C(1) << 40;  // in bytes, exclusive
constexpr std::int64_t largest_extent = INT64_C(1) << 31;  // coordinates are 32-bit integers

constexpr const char* axis_name[] = {"batch", "head", "row"};

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, asked for at run time, so that nothing links against the driver's library.
Encode encode_function() {
  static const Encode function = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000, cudaEnableDefault, &found);
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(address) : nullptr;
  }();
  return function;
}

bool has_elements(const attn_tensor& t) { return t.shape[0] > 0 && t.shape[1] > 0 && t.shape[2] > 0 && t.shape[3] > 0; }

}  // namespace

bool check_mappable(const char* name, const attn_tensor& t, Refusal& refusal) {
  if (!has_elements(t)) return true;
  if (reinterpret_cast<std::uintptr_t>(t.data) % alignment != 0)
    return refusal.refuse("%s does not start at a multiple of 16 bytes, which this kernel's copy engine needs: use fa2",
                          name);
  if (t.shape[3] > 1 && t.stride[3] != 1)
    return refusal.refuse("%s has element stride %" PRId64 "; this kernel's copy engine needs 1: use fa2", name,
                          t.stride[3]);
  for (int a = 0; a < 3; ++a) {
    if (t.shape[a] >= largest_extent)
      return refusal.refuse("%s has %" PRId64 " entries along its %s axis; this kernel takes fewer than 2^31", name,
                            t.shape[a], axis_name[a]);
    if (t.shape[a] <= 1) continue;
    if (a == 2 && t.stride[a] == 0)
      return refusal.refuse("%s repeats one row (stride 0), which this kernel's copy engine cannot read: use fa2",
                            name);
    if (t.stride[a] * element_bytes % alignment != 0 || t.stride[a] >= largest_stride / element_bytes)
      return refusal.refuse("%s has %s stride %" PRId64
                            "; this kernel's copy engine needs a multiple of 8 elements below 2^39: use fa2",
                            name, axis_name[a], t.stride[a]);
  }
  return true;
}

cudaError_t describe(const attn_tensor& t, int box_rows, TensorMap& out) {
  out = {};
  if (!has_elements(t)) return cudaSuccess;
  const Encode encode = encode_function();
  if (!encode) return cudaErrorNotSupported;
  const auto walked = [&t](int axis) { return t.shape[axis] > 1 && t.stride[axis] > 0; };
  out.batch_step = walked(0);
  out.head_step = walked(1);
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(t.shape[3]), static_cast<cuuint64_t>(t.shape[2]),
                               static_cast<cuuint64_t>(walked(1) ? t.shape[1] : 1),
                               static_cast<cuuint64_t>(walked(0) ? t.shape[0] : 1)};
  // The stride of an axis of extent 1 is never used; any legal one will do.
  cuuint64_t stride[3];
  for (int a = 0; a < 3; ++a) {
    const int axis = 2 - a;
    stride[a] = walked(axis) ? static_cast<cuuint64_t>(t.stride[axis] * element_bytes) : alignment;
  }
  const cuuint32_t box[] = {panel_columns, static_cast<cuuint32_t>(box_rows), 1, 1};
  const cuuint32_t step[] = {1, 1, 1, 1};
  const CUresult result =
      encode(&out.map, t.dtype == ATTN_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
             t.data, extent, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace attn::hopper
