#include <algorithm>

#include "properties/mutants/cuda/device_mutants.h"

namespace attest::mutants {

std::vector<TargetedCase> targeted_cases() {
  // Keys 2^20 + 8 elements apart: those from 2048 on lie behind 2^31 elements, 4 GiB of fp16. Three visible keys at the
  // beginning and three at the end, so that each weighs. Beyond the memory that a case file may ask for.
  Case far;
  far.about = "keys behind 2^31 elements";
  far.dtype = DType::fp16;
  far.shape.tk = 2050;
  far.shape.d_qk = far.shape.d_v = 8;
  far.k_layout.row_padding = std::int64_t{1} << 20;
  far.mask.visible.literal.assign(2050, 0);
  for (const std::size_t j : {0, 1, 2, 2047, 2048, 2049}) far.mask.visible.literal[j] = 1;
  far.values.seed = 31;
  return {{DeviceBug::offset_32_bit, "keys behind 2^31 elements", "encloses", far}};
}

Case launch_case() {
  Case c;
  c.about = "one launch for a sanitizer";
  c.shape = {.batch = 2, .q_heads = 4, .kv_heads = 2, .tq = 3, .tk = 170, .d_qk = 20, .d_v = 44};
  c.mask.kv_len = {55, 170};
  c.values.seed = 7;
  return c;
}

}  // namespace attest::mutants
