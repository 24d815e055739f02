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
  // Fragments are fetched one step ahead of their use where a multiprocessor holds one block; two blocks hide the
  // latency by themselves, and have no registers for it.
  static constexpr bool ahead = D > 64;
  static constexpr int steps = ahead ? 2 : 1;  // of four elements or keys to an iteration: one for each buffer
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

  // s[i][j] = q.k of row(i) and key lane() + 16 j, elements in increasing order. Fragments are fetched one step ahead
  // of their use (the last step fetches the first again, for nothing), half of the rows at a time.
  __device__ static void scores(Scores& s, const Memory& memory, int d) {
    constexpr int half = Rows > 1 ? Rows / 2 : 1, halves = Rows / half;
    const float* const q = memory.q + row(0) * Memory::stride;
    const float* const k = memory.k + lane() * Memory::stride;
    float4 x[2][half], y[2][keys_each];
    const auto fetch_rows = [&](float4(&to)[half], int part, int e) {
#pragma unroll
      for (int i = 0; i < half; ++i)
        to[i] = *reinterpret_cast<const float4*>(q + 2 * (part * half + i) * Memory::stride + e);
    };
    const auto fetch_keys = [&](float4(&to)[keys_each], int e) {
#pragma unroll
      for (int j = 0; j < keys_each; ++j) to[j] = *reinterpret_cast<const float4*>(k + 16 * j * Memory::stride + e);
    };
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < keys_each; ++j) s[i][j] = 0.0f;
    if constexpr (ahead) {
      fetch_keys(y[0], 0);
      fetch_rows(x[0], 0, 0);
    }
#pragma unroll 1
    for (int e = 0; e < d; e += 4 * steps) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        const int here = e + 4 * step, after = here + 4 < d ? here + 4 : 0;
        fetch_keys(y[ahead ? 1 - step : step], ahead ? after : here);
#pragma unroll
        for (int part = 0; part < halves; ++part) {
          const int now = (step * halves + part) % 2;
          if constexpr (ahead) {
            fetch_rows(x[1 - now], (part + 1) % halves, part + 1 < halves ? here : after);
          } else {
            fetch_rows(x[now], part, here);
          }
#pragma unroll
          for (int c = 0; c < 4; ++c)
#pragma unroll
            for (int i = 0; i < half; ++i)
#pragma unroll
              for (int along = 0; along < keys_each; ++along) {
                const int j = i % 2 == 0 ? along : keys_each - 1 - along;  // to and fro: see add_products
                float& sum = s[part * half + i][j];
                sum = fmaf(element(x[now][i], c), element(y[step][j], c), sum);
              }
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
    float factors[Rows];
    bool moved = false;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const float top = reduce_lanes<16>(max_nan(max_nan(s[i][0], s[i][1]), max_nan(s[i][2], s[i][3])), MaxOf{});
      const float risen = max_nan(m[i], top), reference = finite_max(risen) * c2;
      float factor = risen == m[i] ? 1.0f : exp2_flushed(m[i] * c2 - reference);
      m[i] = risen;
      float weight[keys_each];
#pragma unroll
      for (int j = 0; j < keys_each; ++j) {
        weight[j] = exp2_flushed(exp2_argument(s[i][j], c2, reference));
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
      factors[i] = factor;
      moved |= factor != 1.0f;
    }
    // A factor of 1 changes nothing; mostly no row of the warp has another.
    if (__any_sync(0xffffffffu, moved)) scale(factors);
  }

  // acc += P.V, keys in increasing order; the value of a key that a row does not see is not touched. Fragments are
  // fetched one step ahead of their use.
  template <bool Hides>
  __device__ void accumulate(const Memory& memory) {
    const float* const p = memory.p + row(0) * Memory::p_stride;
    const float* const v = memory.v + 4 * lane();
    float4 weight[2][Rows], value[2][4];
    const auto fetch_weights = [&](float4(&to)[Rows], int key) {
#pragma unroll
      for (int i = 0; i < Rows; ++i) to[i] = *reinterpret_cast<const float4*>(p + 2 * i * Memory::p_stride + key);
    };
    const auto fetch_values = [&](float4(&to)[4], int key, int c) {
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = *reinterpret_cast<const float4*>(v + (key + k) * D + 64 * c);
    };
    if constexpr (ahead) {
      fetch_weights(weight[0], 0);
      fetch_values(value[0], 0, 0);
    }
#pragma unroll 1
    for (int key = 0; key < simt_block_k; key += 4 * steps) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        const int now = key + 4 * step, after = (now + 4) % simt_block_k;
        fetch_weights(weight[ahead ? 1 - step : step], ahead ? after : now);
#pragma unroll
        for (int c = 0; c < wide; ++c) {
          const int buffer = (step * wide + c) % 2;
          if constexpr (ahead) {
            fetch_values(value[1 - buffer], c + 1 < wide ? now : after, (c + 1) % wide);
          } else {
            fetch_values(value[buffer], now, c);
          }
          add_products<Hides>(acc[c], weight[step], value[buffer]);
        }
      }
    }
  }

  // Multiplies every row by its factor.
  __device__ void scale(const float (&factors)[Rows]) {
#pragma unroll
    for (int c = 0; c < wide; ++c)
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[c][i][e] *= factors[i];
  }
};

}  // namespace attn
