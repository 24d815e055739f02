// One warp's rows against one tile of keys: scores, online softmax, P.V. What the tile kernels share; they differ in
// who loads tiles and in which order they are visited.
//
// A warp holds M x 16 rows. A lane holds rows g and g + 8 of each 16 (g = lane / 4), four lanes to a row. l is kept per
// lane and summed over the four where it is needed.
#pragma once

#include "impl/cuda/approx.cuh"
#include "impl/cuda/mma.cuh"
#include "impl/cuda/tile_memory.cuh"
#include "impl/cuda/tile_rows.cuh"

namespace attn {

enum class Rescale {
  deferred,    // acc is not normalised; rescaled when the maximum rises, divided at the end
  every_block  // acc is O itself: multiplied by l before a block, divided by the new l after it
};

// fl(fl(scale) log2_e) turns a raw score into the exponent of 2.
inline constexpr float log2_e = 0x1.715476p0f;

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return max_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Factor for what was summed under the maximum `from` when it moves to `to`; exactly 1 when it stays, so that a tile in
// which a row sees nothing changes no bit of the row. 0 from -inf. The difference is taken first: its error grows with
// the gap, and the offsets fl(m c2) of several tiles do not add up.
__device__ __forceinline__ float moved_max_factor(float from, float to, float c2) {
  return from == to ? 1.0f : exp2_flushed((from - to) * c2);
}

template <class T, int D, int M, int N>
struct WarpTile {
  using Layout = TileLayout<D>;
  static constexpr int parts = M, rows = 16 * M, width = D;
  using Scores = float[M][N / 8][4];

  float acc[M][D / 8][4];
  float m[M][2], l[M][2];

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  // Row of the warp that element e >= 2 * half of fragment `part` belongs to.
  __device__ static int row(int part, int half) { return 16 * part + 8 * half + lane() / 4; }
  // Column of the lane's first element in a fragment of 8 columns.
  __device__ static int column() { return 2 * (lane() % 4); }

  __device__ void clear() {
#pragma unroll
    for (int part = 0; part < M; ++part) {
#pragma unroll
      for (int t = 0; t < D / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[part][t][e] = 0.0f;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        m[part][half] = neg_infinity<float>;
        l[part][half] = 0.0f;
      }
    }
  }

  // x = q.k. q: the warp's first row in shared memory; k: the tile. Both tiles are aligned to their row size, so that a
  // step along D is an exclusive or.
  __device__ static void scores(Scores& x, std::uint32_t q, std::uint32_t k) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) x[part][t][e] = 0.0f;
    const std::uint32_t q_at = q + Layout::offset(lane() % 16, lane() / 16);
    const std::uint32_t k_at = k + Layout::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t a[M][4];
#pragma unroll
      for (int part = 0; part < M; ++part)
        load_matrices(a[part], (q_at ^ static_cast<std::uint32_t>(32 * step)) + Layout::bytes(16 * part));
#pragma unroll
      for (int t = 0; t < N / 16; ++t) {
        std::uint32_t b[4];
        load_matrices(b, (k_at ^ static_cast<std::uint32_t>(32 * step)) + Layout::bytes(16 * t));
#pragma unroll
        for (int part = 0; part < M; ++part) {
          multiply_add<T>(x[part][2 * t], a[part], b[0], b[1]);
          multiply_add<T>(x[part][2 * t + 1], a[part], b[2], b[3]);
        }
      }
    }
  }

  // Keys from the row's limit on are hidden.
  __device__ static void hide_beyond(Scores& x, const int (&limit)[M][2]) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (8 * t + column() + e % 2 >= limit[part][e / 2]) x[part][t][e] = neg_infinity<float>;
  }

  // Keys are hidden as the codes of the warp's rows say.
  __device__ static void hide_by_codes(Scores& x, const std::uint8_t* codes) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uchar2 code = *reinterpret_cast<const uchar2*>(codes + row(part, half) * N + 8 * t + column());
          float* pair = &x[part][t][2 * half];
          pair[0] = hidden_or(pair[0], code.x);
          pair[1] = hidden_or(pair[1], code.y);
        }
  }

  // Scores become weights; m and l move on, and acc is brought to the new maximum. With Rescale::every_block, `divide`
  // holds the factor that normalises acc once the tile's values are in.
  template <Rescale rescale>
  __device__ void weigh(Scores& x, float c2, float (&divide)[M][2]) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = x[part][0][2 * half];
#pragma unroll
        for (int t = 0; t < N / 8; ++t) top = max_nan(max_nan(top, x[part][t][2 * half]), x[part][t][2 * half + 1]);
        top = quad_max(top);
        const bool sees = top != neg_infinity<float>;
        const float old = m[part][half], risen = max_nan(old, top);
        float factor = moved_max_factor(old, risen, c2);
        const float offset = finite_max(risen) * c2;
        float sum[2] = {0.0f, 0.0f};
#pragma unroll
        for (int t = 0; t < N / 8; ++t)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& w = x[part][t][2 * half + e];
            w = exp2_flushed(exp2_argument(w, c2, offset));
            sum[e] += w;
          }
        m[part][half] = risen;
        l[part][half] = l[part][half] * factor;
        if constexpr (rescale == Rescale::every_block) {
          factor = sees ? l[part][half] : 1.0f;
          l[part][half] += quad_sum(sum[0] + sum[1]);
          divide[part][half] = sees ? reciprocal(l[part][half]) : 1.0f;
        } else {
          l[part][half] += sum[0] + sum[1];
        }
        scale_row(part, half, factor);
      }
  }

  // acc += P.V, weights rounded to the input format.
  __device__ void accumulate(const Scores& weight, std::uint32_t v) {
    const std::uint32_t v_at = v + Layout::offset(lane() % 16, lane() / 16);
#pragma unroll
    for (int step = 0; step < N / 16; ++step) {
      std::uint32_t a[M][4];
#pragma unroll
      for (int part = 0; part < M; ++part)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float* pair = &weight[part][2 * step + e / 2][e % 2 * 2];
          a[part][e] = pack_rounded<T>(pair[0], pair[1]);
        }
#pragma unroll
      for (int t = 0; t < D / 16; ++t) {
        std::uint32_t b[4];
        load_matrices_transposed(b, (v_at ^ static_cast<std::uint32_t>(32 * t)) + Layout::bytes(16 * step));
#pragma unroll
        for (int part = 0; part < M; ++part) {
          multiply_add<T>(acc[part][2 * t], a[part], b[0], b[1]);
          multiply_add<T>(acc[part][2 * t + 1], a[part], b[2], b[3]);
        }
      }
    }
  }

  // Multiplies a row's acc. A factor of 1 changes nothing: where all rows of the warp have it, the products are left
  // out.
  __device__ void scale_row(int part, int half, float factor) {
    if (!__any_sync(0xffffffffu, factor != 1.0f)) return;
#pragma unroll
    for (int t = 0; t < D / 8; ++t) {
      acc[part][t][2 * half] *= factor;
      acc[part][t][2 * half + 1] *= factor;
    }
  }

 private:
  __device__ static float hidden_or(float x, std::uint8_t code) {
    if (code == mask_code::invalid) return __int_as_float(0x7fffffff);
    return code == mask_code::hidden ? neg_infinity<float> : x;
  }
};

}  // namespace attn
