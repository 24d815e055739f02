// The projects, one function each; projects.cpp puts them in order.
#pragma once

#include "properties/field/field.h"

namespace attest::field {

Project flash_attention_2();
Project flash_attention_3();
Project cudnn_frontend();
Project cutlass_fmha();
Project transformer_engine();
Project flashinfer();
Project flashinfer_trtllm();
Project flashinfer_bench();
Project vllm();
Project pytorch_sdpa();
Project onednn();
Project llama_cpp();
Project xformers();
Project jax_splash();

}  // namespace attest::field
