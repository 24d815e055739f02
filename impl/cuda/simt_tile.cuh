// A block's rows against one tile of 64 keys in fp32: scores, online softmax, P.V, all by fused multiply-adds on
// register fragments. What the SIMT kernels share; they differ in the order in which they visit tiles.
//
// 8 warps; a warp holds 2 Rows rows, 16 lanes to a row: lane t of a half warp has keys t, t + 16, t + 32, t + 48 of the
// scores and columns 4 t .. 4 t + 3 of each 64 of O. A row's weights stay within its warp, so that only the tiles of K
// and V are shared by all. Rows in shared memory are padded by 4 elements: the 128-bit reads of a half warp's 16 keys
// then fall into different banks, eight at a time.
//
// Every sum of a row runs in an order that Rows does not enter: the number of rows in a block changes no bit.
#pragma once

#include "impl/core/online_softmax.h"
#include "impl/cuda/approx.cuh"
#include "impl/cuda/forward_view.cuh"
#include "impl/cuda/simt_format.cuh"
#include "impl/cuda/simt_warp.cuh"

namespace attn {

inline constexpr int simt_warps = 8;
inline constexpr int simt_threads = 32 * simt_warps;
inline constexpr int simt_block_k = 64;

// fl(fl(scale) log2_e) turns a raw score into the exponent of 2.
inline constexpr float simt_log2_e = 0x1.715476p0f;

template <int Rows, int D>
struct SimtMemory {
  static constexpr int block_q = 2 * simt_warps * Rows;
  static constexpr int stride = D + 4;                // of Q and K
  static constexpr int p_stride = simt_block_k + 16;  // neighbouring rows are 16 banks apart
  alignas(16) float q[block_q * stride];
  float k[simt_block_k * stride];
  float v[simt_block_k * D];
  float p[block_q * p_stride];
};

enum class SimtRescale {
  deferred,    // acc is not normalised; rescaled when the maximum rises, divided at the end
  every_block  // acc is O itself: multiplied by l before a block, divided by the new l after it
};

template <int Rows, int D>
struct SimtTile {
  using Memory = SimtMemory<Rows, D>;
  static constexpr int wide = D / 64, keys_each = simt_block_k / 16;
  using Scores = float[Rows][keys_each];

  float acc[wide][Rows][4];
  float m[Rows], l[Rows];  // l: this lane's share, or all of it with every_block

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 16; }
  // Row of the block that fragment row i of this thread is.
  __device__ static int row(int i) {
    return static_cast<int>(threadIdx.x) / 32 * 2 * Rows + 2 * i + static_cast<int>(threadIdx.x) / 16 % 2;
  }
  // First row of this thread's warp.
  __device__ static int warp_row() { return static_cast<int>(threadIdx.x) / 32 * 2 * Rows; }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      m[i] = neg_infinity<float>;
      l[i] = 0.0f;
#pragma unroll
      for (int c = 0; c < wide; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[c][i][e] = 0.0f;
    }
  }

  // s[i][j] = q.k of row(i) and key lane() + 16 j, elements in increasing order.
  __device__ static void scores(Scores& s, const Memory& memory, int d) {
    const float* q = memory.q + row(0) * Memory::stride;
    const float* k = memory.k + lane() * Memory::stride;
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < keys_each; ++j) s[i][j] = 0.0f;
#pragma unroll(D <= 64 && Rows >= 8 ? 1 : 2)
    for (int e = 0; e < d; e += 4) {
      float4 y[keys_each];
#pragma unroll
      for (int j = 0; j < keys_each; ++j) y[j] = *reinterpret_cast<const float4*>(k + 16 * j * Memory::stride + e);
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(q + 2 * i * Memory::stride + e);
#pragma unroll
        for (int j = 0; j < keys_each; ++j) {
          s[i][j] = fmaf(x.x, y[j].x, s[i][j]);
          s[i][j] = fmaf(x.y, y[j].y, s[i][j]);
          s[i][j] = fmaf(x.z, y[j].z, s[i][j]);
          s[i][j] = fmaf(x.w, y[j].w, s[i][j]);
        }
      }
    }
  }

  // Scores become weights, in shared memory; m and l move on, and acc is brought to the new maximum. Hides: bit
  // keys_each i + j of `hidden` marks a key that the row does not see (its score is -inf). With every_block, divide[i]
  // normalises acc once the values are in.
  //
  // The factor is exp2(fl(m_old c2) - fl(m c2)): factors telescope, so that all weights of a row end in one and the
  // same frame, whatever maxima it went through. A row that sees nothing keeps every bit.
  template <bool Hides, SimtRescale rescale>
  __device__ void weigh(const Scores& s, unsigned hidden, Memory& memory, float c2, float (&divide)[Rows]) {
    float* const p = memory.p + row(0) * Memory::p_stride + lane();
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const float top = reduce_lanes<16>(max_nan(max_nan(s[i][0], s[i][1]), max_nan(s[i][2], s[i][3])), MaxOf{});
      const float risen = max_nan(m[i], top), reference = finite_max(risen) * c2;
      float factor = risen == m[i] ? 1.0f : exp2_gradual(m[i] * c2 - reference);
      m[i] = risen;
      float weight[keys_each];
#pragma unroll
      for (int j = 0; j < keys_each; ++j) {
        weight[j] = exp2_gradual(exp2_argument(s[i][j], c2, reference));
        const bool hides = Hides && hidden >> (keys_each * i + j) & 1u;
        p[2 * i * Memory::p_stride + 16 * j] = hides ? hidden_weight : weight[j];
      }
      const float sum = (weight[0] + weight[1]) + (weight[2] + weight[3]);
      l[i] *= factor;
      if constexpr (rescale == SimtRescale::every_block) {
        const bool sees = top != neg_infinity<float>;
        factor = sees ? l[i] : 1.0f;
        l[i] += reduce_lanes<16>(sum, SumOf{});
        divide[i] = sees ? reciprocal(l[i]) : 1.0f;
      } else {
        l[i] += sum;
      }
      scale_row(i, factor);
    }
  }

  // acc += P.V, keys in increasing order; the value of a key that a row does not see is not touched.
  template <bool Hides>
  __device__ void accumulate(const Memory& memory) {
    const float* const p = memory.p + row(0) * Memory::p_stride;
    const float* const v = memory.v + 4 * lane();
#pragma unroll 1
    for (int j = 0; j < simt_block_k; j += 4) {
      float4 weight[Rows];
#pragma unroll
      for (int i = 0; i < Rows; ++i) weight[i] = *reinterpret_cast<const float4*>(p + 2 * i * Memory::p_stride + j);
#pragma unroll
      for (int c = 0; c < wide; ++c) {
        float4 value[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) value[k] = *reinterpret_cast<const float4*>(v + (j + k) * D + 64 * c);
        add_products<Hides>(acc[c], weight, value);
      }
    }
  }

  __device__ void scale_row(int i, float factor) {
#pragma unroll
    for (int c = 0; c < wide; ++c)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[c][i][e] *= factor;
  }
};

}  // namespace attn
