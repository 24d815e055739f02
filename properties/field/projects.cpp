#include <stdexcept>
#include <string>

#include "properties/field/table.h"

namespace attest::field {

std::span<const Project> projects() {
  static const std::vector<Project> all = {
      flash_attention_2(), flash_attention_3(), cudnn_frontend(), cutlass_fmha(),       flashinfer(),
      flashinfer_trtllm(), pytorch_sdpa(),      onednn(),         transformer_engine(), vllm(),
      llama_cpp(),         xformers(),          jax_splash(),     flashinfer_bench(),
  };
  return all;
}

const Project& project(std::string_view name) {
  for (const Project& p : projects())
    if (p.name == name) return p;
  throw std::out_of_range("no project is named " + std::string(name));
}

}  // namespace attest::field
